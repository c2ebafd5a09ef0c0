/**
 * What a team would write by hand in an afternoon: Fastify and `pg`, a key checked in memory, one row inserted a request. It has no
 * metering, limits, telemetry or log that can be verified. Tuned as its users would: a pool of ten, a named prepared statement,
 * schemas for what comes in and goes out, no logger.
 *
 *     PGHOST=… node BaselineServer.ts <port> <key>…      (`pg` reads the database's address from the environment)
 */
import fastify from "fastify"
import { createHash, randomUUID } from "node:crypto"
import { Pool } from "pg"

const [port, ...secrets] = process.argv.slice(2)
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex")
const keys = new Map(secrets.map((secret) => [sha256(secret), { id: randomUUID() }]))

const pool = new Pool({ max: 10 })

const table = `CREATE TABLE IF NOT EXISTS events (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  event_id uuid NOT NULL,
  key_id uuid NOT NULL,
  vat_id text NOT NULL,
  data jsonb NOT NULL,
  recorded_at timestamptz NOT NULL DEFAULT now()
)`

const insert = {
  name: "insert",
  text: "INSERT INTO events (event_id, key_id, vat_id, data) VALUES ($1, $2, $3, $4)"
}

const nullable = { type: ["string", "null"] }

const ValidationResult = {
  type: "object",
  properties: {
    valid: { type: "boolean" },
    vat_id: { type: "string" },
    country_code: { type: "string" },
    vat_number: { type: "string" },
    company_name: nullable,
    company_address: nullable,
    source: { type: "string" },
    source_timestamp: nullable,
    cache: { type: "boolean" },
    qualified_confirmation: nullable,
    consultation_number: nullable,
    request_id: { type: "string" },
    requested_at: { type: "string" }
  }
}

const ErrorBody = { type: "object", properties: { error: { type: "string" } } }

/** The same answer for every id: that it had to be looked up anywhere is in this service's favour. */
const answer = {
  valid: true,
  company_name: "Musterhaus GmbH & Co KG",
  company_address: "Musterstrasse 22\n12345 musterort",
  source: "cache",
  source_timestamp: "2026-11-21T01:40:17.606Z",
  cache: true,
  qualified_confirmation: null,
  consultation_number: null
}

const app = fastify({ logger: false })

app.get<{ Params: { vatId: string } }>(
  "/v1/validate/:vatId",
  {
    schema: {
      params: { type: "object", properties: { vatId: { type: "string", minLength: 4, maxLength: 20 } } },
      response: { 200: ValidationResult, 401: ErrorBody }
    }
  },
  (request, reply) => {
    const secret = request.headers["x-api-key"]
    const key = keys.get(sha256(typeof secret === "string" ? secret : ""))
    if (key === undefined) return reply.code(401).send({ error: "UNAUTHORIZED" })
    const { vatId } = request.params
    const requestId = randomUUID()
    const data = JSON.stringify({ vat_id: vatId, valid: true, source: "cache", request_id: requestId })
    return pool.query({ ...insert, values: [randomUUID(), key.id, vatId, data] }).then(() => ({
      ...answer,
      vat_id: vatId,
      country_code: vatId.slice(0, 2),
      vat_number: vatId.slice(2),
      request_id: requestId,
      requested_at: new Date().toISOString()
    }))
  }
)

pool
  .query(table)
  .then(() => app.listen({ host: "127.0.0.1", port: Number(port) }))
  .catch((error: unknown) => {
    console.error(error)
    process.exitCode = 1
  })
