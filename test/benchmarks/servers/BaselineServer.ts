/**
 * The baseline: a minimal validation service with Fastify and `pg`. It checks keys in memory, caches answers in memory, looks up with
 * `fetch` and inserts one row per validation. It has no limits, retries, telemetry or verifiable log, and writes usage counters once a
 * second. It is tuned: a pool of ten connections, named prepared statements, schemas for requests and responses, no logger.
 *
 *     node BaselineServer.ts <pg or emmett> <URL of the database> <port> <base URL of VIES> <key>…
 *
 * With `emmett` it appends each validation as an event to the stream of its key, by the event store Emmett.
 */
import { isExpectedVersionConflictError } from "@event-driven-io/emmett"
import { getPostgreSQLEventStore } from "@event-driven-io/emmett-postgresql"
import fastify, { type FastifyReply, type FastifyRequest } from "fastify"
import { createHash, randomUUID } from "node:crypto"
import { Pool } from "pg"
import * as BaselineSchemas from "#test/benchmarks/servers/BaselineSchemas.ts"
import { isWellFormed, normalise } from "#test/benchmarks/servers/BaselineVatId.ts"

const [store, connectionString = "", port, viesBaseUrl, ...secrets] = process.argv.slice(2)
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex")
const keys = new Map(secrets.map((secret) => [sha256(secret), randomUUID().toString()]))
const monthlyLimit = 1_000_000_000

const pool = new Pool({ connectionString, max: 10 })

const tables = `CREATE TABLE IF NOT EXISTS events (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  event_id uuid NOT NULL,
  key_id uuid,
  vat_id text NOT NULL,
  data jsonb NOT NULL,
  recorded_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS usage (
  key_id uuid NOT NULL,
  month text NOT NULL,
  used integer NOT NULL,
  PRIMARY KEY (key_id, month)
)`

const insertEvent = { name: "insert", text: "INSERT INTO events (event_id, key_id, vat_id, data) VALUES ($1, $2, $3, $4)" }
const selectUsage = { name: "usage", text: "SELECT used FROM usage WHERE key_id = $1 AND month = $2" }
const addUsage = {
  name: "add",
  text: `INSERT INTO usage (key_id, month, used) SELECT k, $2, n FROM unnest($1::uuid[], $3::int[]) AS t(k, n)
    ON CONFLICT (key_id, month) DO UPDATE SET used = usage.used + excluded.used`
}

interface Answer {
  readonly valid: boolean
  readonly company_name: string | null
  readonly company_address: string | null
  readonly source_timestamp: string
}

/** Returns the id of the request's key; null without a key, undefined for an unknown key. */
const keyOf = ({ headers }: FastifyRequest) => {
  const secret = headers["x-api-key"]
  return secret === undefined ? null : keys.get(sha256(String(secret)))
}

const cacheMs = 24 * 60 * 60 * 1_000
const cacheMax = 1_000_000
const cache = new Map<string, { readonly answer: Answer; readonly until: number }>()

const cachedAnswer = (vatId: string) => {
  const entry = cache.get(vatId)
  return entry !== undefined && entry.until > Date.now() ? entry.answer : undefined
}

const cacheAnswer = (vatId: string, answer: Answer) => {
  const [oldest] = cache.size >= cacheMax ? cache.keys() : []
  if (oldest !== undefined) cache.delete(oldest)
  cache.set(vatId, { answer, until: Date.now() + cacheMs })
  return answer
}

interface CheckVatResponse {
  readonly valid: boolean
  readonly name?: string
  readonly address?: string
  readonly requestDate: string
}

const isAnswer = (json: unknown): json is CheckVatResponse =>
  typeof json === "object" && json !== null && "valid" in json && typeof json.valid === "boolean"

const unavailable = () => Object.assign(new Error("The source gave no answer"), { statusCode: 503 })

const lookUp = (vatId: string): Promise<Answer> =>
  fetch(`${viesBaseUrl}/check-vat-number`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ countryCode: vatId.slice(0, 2), vatNumber: vatId.slice(2) }),
    signal: AbortSignal.timeout(20_000)
  })
    .then((response) => response.json())
    .then((json) => {
      if (!isAnswer(json)) return Promise.reject(unavailable())
      const { address = null, name = null, requestDate, valid } = json
      return { valid, company_name: name, company_address: address, source_timestamp: requestDate }
    })

/** Number of validations by key that are not yet in the table `usage`. */
const unsavedCounts = new Map<string, number>()
let savedAt = 0

const monthNow = () => new Date().toISOString().slice(0, 7)

const count = (keyId: string) => {
  unsavedCounts.set(keyId, (unsavedCounts.get(keyId) ?? 0) + 1)
  const now = Date.now()
  if (now - savedAt < 1_000) return
  savedAt = now
  const values = [[...unsavedCounts.keys()], monthNow(), [...unsavedCounts.values()]]
  unsavedCounts.clear()
  pool.query({ ...addUsage, values }).catch(console.error)
}

type Insert = (keyId: string | null, vatId: string, data: Record<string, unknown>) => Promise<unknown>

/** Inserts a row with a named prepared statement. */
const insertRow: Insert = (keyId, vatId, data) =>
  pool.query({ ...insertEvent, values: [randomUUID(), keyId, vatId, JSON.stringify(data)] })

/** Appends an event to the stream of the key. Emmett fails if two appends change one stream at the same time, so it is repeated. */
const appendEvent = (): Insert => {
  const events = getPostgreSQLEventStore(connectionString)
  const append = (stream: string, data: Record<string, unknown>): Promise<unknown> =>
    events
      .appendToStream(stream, [{ type: "VatIdVerified", data }])
      .catch((error: unknown) => (isExpectedVersionConflictError(error) ? append(stream, data) : Promise.reject(error)))
  return (keyId, _, data) => append(`key-${keyId ?? "none"}`, data)
}

const insert = store === "emmett" ? appendEvent() : insertRow

interface Validation {
  readonly vatId: string
  readonly keyId: string | null
  readonly answer: Answer
  readonly cached: boolean
}

/** Stores the validation and returns the response. */
const record = ({ answer, cached, keyId, vatId }: Validation) => {
  const requestId = randomUUID()
  const source = cached ? "cache" : "vies"
  // The full answer is stored once, with the live look-up.
  const stored = cached ? { valid: answer.valid } : answer
  if (keyId !== null) count(keyId)
  return insert(keyId, vatId, { vat_id: vatId, source, request_id: requestId, ...stored }).then(() => ({
    ...answer,
    vat_id: vatId,
    country_code: vatId.slice(0, 2),
    vat_number: vatId.slice(2),
    source,
    cache: cached,
    qualified_confirmation: null,
    consultation_number: null,
    request_id: requestId,
    requested_at: new Date().toISOString()
  }))
}

const reject = (reply: FastifyReply, status: 400 | 401, error: string) => reply.code(status).send({ error })

const app = fastify({ logger: false })

app.get<{ Params: { vatId: string }; Querystring: { force_live?: boolean } }>(
  "/v1/validate/:vatId",
  { schema: BaselineSchemas.validate },
  (request, reply) => {
    const keyId = keyOf(request)
    if (keyId === undefined) return reject(reply, 401, "UNAUTHORIZED")
    const vatId = normalise(request.params.vatId)
    if (!isWellFormed(vatId)) return reject(reply, 400, "INVALID_VAT_ID")
    const hit = request.query.force_live === true ? undefined : cachedAnswer(vatId)
    if (hit !== undefined) return record({ vatId, keyId, answer: hit, cached: true })
    return lookUp(vatId).then((answer) => record({ vatId, keyId, answer: cacheAnswer(vatId, answer), cached: false }))
  }
)

app.get("/v1/usage", { schema: BaselineSchemas.usage }, (request, reply) => {
  const keyId = keyOf(request)
  if (keyId === undefined || keyId === null) return reject(reply, 401, "UNAUTHORIZED")
  const now = new Date()
  const monthStart = (offset: number) => new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + offset)).toISOString()
  return pool.query<{ used: number }>({ ...selectUsage, values: [keyId, monthNow()] }).then(({ rows }) => {
    const used = rows[0]?.used ?? 0
    return {
      plan: "free",
      period: { start: monthStart(0), end: monthStart(1) },
      requests: { used, remaining: Math.max(0, monthlyLimit - used), limit: monthlyLimit }
    }
  })
})

pool
  .query(tables)
  .then(() => app.listen({ host: "127.0.0.1", port: Number(port) }))
  .catch((error: unknown) => {
    console.error(error)
    process.exitCode = 1
  })
