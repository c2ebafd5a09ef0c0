import { DateTime, Effect, Schema } from "effect"
import { Sandbox } from "#test/support/Sandbox.ts"
import { checkpointOf, layerSigned, newAuditor } from "#test/support/Auditing.ts"
import { described, operations } from "#test/support/Description.ts"
import { confirm, newPaidKey, receiptIdOf } from "#test/support/PaidKey.ts"
import { bearing, newUser, password } from "#test/support/People.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { Ask, Reply } from "#test/support/ServiceClient.ts"
import { assert, layer } from "#test/support/Test.ts"

/** Headers that every HTTP server sends. */
const ofHttp = new Set(["date", "connection", "keep-alive", "content-length", "content-type", "transfer-encoding"])

/** Asserts that the document lists all headers of the reply for its operation and status, and that the reply has the required ones. */
const assertDescribed = (operation: string, reply: Reply) => {
  const where = `${operation} ${reply.status}`
  const found = operations.find(({ name }) => name === operation)?.operation.responses[String(reply.status)]
  if (found === undefined) return assert.fail(`${where} is not described: ${reply.text}`)
  const named = new Map(Object.keys(found.headers).map((name) => [name.toLowerCase(), name]))
  const sent = Object.keys(reply.headers).filter((name) => !ofHttp.has(name))
  assert.deepStrictEqual(
    sent.filter((name) => !named.has(name)),
    [],
    where
  )
  const required = Array.from(named).filter(([, name]) => described.components.headers[name]?.required === true)
  assert.deepStrictEqual(
    required.map(([name]) => name).filter((name) => !sent.includes(name)),
    [],
    where
  )
  const mediaType = reply.headers["content-type"]?.split(";", 1)[0] ?? ""
  assert.include(Object.keys(found.content), mediaType, where)
}

/** Calls an operation and asserts the status and the headers of the reply. */
const makeAsk = Effect.map(
  RunningService.RunningService,
  ({ ask }) =>
    (operation: string, status: number, more: Ask & { readonly path?: string; readonly sends?: ReadonlyArray<string> } = {}) =>
      Effect.gen(function* () {
        const [method, template = ""] = operation.split(" ", 2)
        const { path = template, sends = [], ...rest } = more
        const reply = yield* ask(path, { ...rest, method: method === "POST" || method === "DELETE" ? method : "GET" })
        assert.strictEqual(reply.status, status, `${operation} ${reply.text}`)
        for (const name of sends) assert.isDefined(reply.headers[name], `${operation} ${status} ${name}`)
        assertDescribed(operation, reply)
        return reply
      })
)

const decodeUrl = (body: unknown) =>
  Effect.map(Schema.decodeUnknownEffect(Schema.Struct({ url: Schema.String }))(body), ({ url }) => url)

const perMinute = 6

const testLayer = layerSigned({ PLAN_FREE_PER_MINUTE: String(perMinute), PLAN_FREE_PER_MONTH: "4" })

const html = { accept: "text/html" }

layer(testLayer, { excludeTestServices: true })("The OpenAPI document", (it) => {
  it.effect("lists the response headers of successful and rejected validations, with and without a key", function* () {
    const ask = yield* makeAsk
    const { newKey } = yield* RunningService.RunningService
    const sandbox = yield* Sandbox
    const validate = "GET /v1/validate/{vat_id}"
    const path = "/v1/validate/ATU12345678"
    const counted = ["x-service-usage", "ratelimit", "ratelimit-policy"]
    yield* ask(validate, 200, { path, sends: counted })
    yield* ask(validate, 400, { path: "/v1/validate/XX1", sends: counted })
    yield* ask(validate, 401, { path, key: "svc_live_none" })
    const key = yield* newKey
    for (let call = 0; call < 3; call++) yield* ask(validate, 200, { path, key, sends: counted })
    yield* ask(validate, 200, { path, key, sends: [...counted, "x-service-upgrade"] })
    yield* ask(validate, 402, { path, key, sends: counted })
    yield* ask(validate, 402, { path, key, sends: counted })
    yield* ask(validate, 429, { path, key, sends: [...counted, "retry-after"] })
    yield* ask("GET /v1/usage", 200, { key, sends: ["x-service-usage", "x-service-upgrade"] })
    yield* ask("GET /v1/usage", 401)
    yield* sandbox.configure({ vies_available: false, bzst_available: false })
    yield* ask(validate, 503, { path: "/v1/validate/ATU10440001", sends: [...counted, "retry-after"] })
    yield* sandbox.configure({ vies_available: true, bzst_available: true })
  })

  it.effect("lists the response headers of the endpoints for pending validations", function* () {
    const ask = yield* makeAsk
    const { newKey } = yield* RunningService.RunningService
    const key = yield* newKey
    const submit = "POST /v1/validations"
    const counted = ["x-service-usage", "ratelimit", "ratelimit-policy"]
    const headers = { prefer: "respond-async, wait=5", "idempotency-key": '"1"' }
    const sent = { key, headers, body: { vat_id: "ATU12345678" } }
    yield* ask(submit, 200, { ...sent, sends: [...counted, "preference-applied"] })
    yield* ask(submit, 200, { ...sent, sends: ["preference-applied", "idempotent-replayed"] })
    yield* ask(submit, 422, { ...sent, body: { vat_id: "ATU12345679" } })
    yield* ask(submit, 400, { key, body: {} })
    yield* ask(submit, 400, { ...sent, headers: { "idempotency-key": "ä" } })
    const pending = { ...sent, headers: { prefer: "respond-async" }, body: { vat_id: "MT10999301" } }
    const { headers: accepted } = yield* ask(submit, 202, {
      ...pending,
      sends: ["location", "retry-after", "preference-applied"]
    })
    const path = accepted["location"] ?? ""
    yield* ask("GET /v1/validations/{validation_id}", 200, { path, key, sends: ["retry-after", "x-service-usage"] })
    yield* ask("DELETE /v1/validations/{validation_id}", 200, { path, key })
    yield* ask("GET /v1/validations/{validation_id}", 404, { path: "/v1/validations/x", key })
    yield* ask("GET /v1/validations", 200, { key })
    yield* ask("GET /v1/validations", 400, { key, query: { status: "open" } })
    yield* ask("GET /v1/updates", 200, { key })
    yield* ask("GET /v1/updates", 400, { key, query: { limit: "0" } })
  })

  it.effect("lists the response headers of the endpoints for batches of VAT IDs", function* () {
    const ask = yield* makeAsk
    const { newKey } = yield* RunningService.RunningService
    const key = yield* newKey
    const submit = "POST /v1/batches"
    const headers = { prefer: "wait=1", "idempotency-key": '"batch"' }
    const sent = { key, headers, body: { items: [{ custom_id: "1", vat_id: "XX" }] } }
    yield* ask(submit, 202, { ...sent, sends: ["location", "preference-applied", "ratelimit"] })
    const { headers: replayed } = yield* ask(submit, 202, { ...sent, sends: ["idempotent-replayed"] })
    yield* ask(submit, 400, { key, body: {} })
    yield* ask(submit, 422, { ...sent, body: { items: [{ custom_id: "2", vat_id: "XX" }] } })
    const path = replayed["location"] ?? ""
    yield* ask("GET /v1/batches/{batch_id}", 200, { path, key })
    yield* ask("GET /v1/batches/{batch_id}/results", 200, { path: `${path}/results`, key })
    yield* ask("POST /v1/batches/{batch_id}/cancel", 200, { path: `${path}/cancel`, key })
    yield* ask("GET /v1/batches", 200, { key })
  })

  it.effect("lists the response headers of the endpoints for proofs, and for receipts as JSON, HTML page and PDF", function* () {
    const ask = yield* makeAsk
    const service = yield* RunningService.RunningService
    const key = yield* newPaidKey(service)
    const receiptId = yield* Effect.flatMap(confirm(service, "DE123456789", key), receiptIdOf)
    const one = "GET /v1/qualified-confirmations/{receipt_id}"
    const path = `/v1/qualified-confirmations/${receiptId}`
    yield* ask(one, 200, { path, key, sends: ["vary", "x-service-usage"] })
    yield* ask(one, 200, { path, key, headers: html, sends: ["vary", "content-language", "content-security-policy"] })
    const pdf = { accept: "application/pdf" }
    yield* ask(one, 200, { path, key, headers: pdf, sends: ["vary", "content-language", "content-disposition"] })
    yield* ask(one, 404, { path: "/v1/qualified-confirmations/x", key, sends: ["x-service-usage"] })
    yield* ask(one, 401, { path })
    const links = "POST /v1/qualified-confirmations/{receipt_id}/links"
    const link = yield* ask(links, 201, { path: `${path}/links`, key, body: {}, sends: ["x-service-usage"] })
    const { pathname } = new URL(yield* decodeUrl(link.body))
    const open = "GET /v1/receipt-links/{token}"
    const secluded = ["vary", "x-robots-tag", "referrer-policy"]
    yield* ask(open, 200, { path: pathname, sends: [...secluded, "content-security-policy", "etag"] })
    yield* ask(open, 200, { path: pathname, query: { format: "pdf" }, sends: [...secluded, "content-disposition"] })
    yield* ask(open, 404, { path: `${pathname}x`, headers: html, sends: secluded })
    const list = "GET /v1/qualified-confirmations"
    yield* ask(list, 200, { key, sends: ["x-service-usage"] })
    yield* ask(list, 400, { key, query: { limit: "101" }, sends: ["x-service-usage"] })
    const proof = "GET /v1/audit/proofs/{subject}"
    yield* ask(proof, 200, { path: `/v1/audit/proofs/${receiptId}`, key, sends: ["content-disposition", "x-service-usage"] })
    yield* ask(proof, 200, { path: `/v1/audit/proofs/${receiptId}`, key, headers: { accept: "application/json" } })
    yield* ask(proof, 404, { path: "/v1/audit/proofs/999999", key })
    yield* ask(proof, 401, { path: "/v1/audit/proofs/0", sends: ["www-authenticate"] })
  })

  it.effect(
    "lists the response headers of the endpoints for registrations, logins, email confirmations and API keys",
    function* () {
      const ask = yield* makeAsk
      const service = yield* RunningService.RunningService
      const register = "POST /v1/register"
      yield* ask(register, 201, { body: { email: "registered@example.com" } })
      yield* ask(register, 409, { body: { email: "registered@example.com" } })
      yield* ask(register, 400, { body: {} })
      yield* ask(register, 413, { body: { agent_id: "x".repeat(20_000) } })
      const { email, token } = yield* newUser(service)
      yield* ask("POST /v1/auth/login", 200, { body: { email, password } })
      yield* ask("POST /v1/auth/login", 401, { body: { email, password: "wrong password" } })
      const verify = "GET /v1/auth/verify-email"
      yield* ask(verify, 400, { query: { token: "x" } })
      const page = ["vary", "content-security-policy", "referrer-policy"]
      yield* ask(verify, 400, { query: { token: "x" }, headers: html, sends: page })
      yield* ask("POST /v1/auth/verify-email", 400, { body: { token: "x" }, headers: html, sends: page })
      const keys = "POST /v1/auth/api-keys"
      yield* ask(keys, 201, bearing(token))
      yield* ask(keys, 400, { ...bearing(token), body: { name: 1 } })
      yield* ask(keys, 401, { body: {}, sends: ["www-authenticate"] })
      yield* ask("GET /v1/auth/api-keys", 200, bearing(token))
      yield* ask("DELETE /v1/auth/api-keys/{id}", 404, { ...bearing(token), path: "/v1/auth/api-keys/x" })
    }
  )

  it.effect(
    "lists the response headers of the endpoints for the log, its checkpoint and its tiles, even if a client escapes slashes as %2F",
    function* () {
      const ask = yield* makeAsk
      const service = yield* RunningService.RunningService
      const { headers } = yield* newAuditor()
      const today = DateTime.formatIsoDateUtc(yield* DateTime.now)
      yield* ask("GET /v1/audit/events", 200, { headers, query: { from: today, to: today } })
      yield* ask("GET /v1/audit/events", 200, { headers: { ...headers, accept: "application/x-ndjson" } })
      yield* ask("GET /v1/audit/events", 400, { headers, query: { limit: "0" } })
      yield* ask("GET /v1/audit/events", 401, { sends: ["www-authenticate"] })
      yield* ask("GET /v1/audit/events/{position}", 200, { headers, path: "/v1/audit/events/0" })
      yield* checkpointOf(service, 1)
      yield* ask("GET /v1/audit/checkpoint", 200)
      const partial = "GET /v1/audit/tile/{level}/{index}.p/{width}"
      const asWritten = yield* ask(partial, 200, { path: "/v1/audit/tile/0/000.p/1" })
      const full = "GET /v1/audit/tile/{level}/{index}"
      yield* ask(full, 404, { path: "/v1/audit/tile/0/x001/000" })
      // Generated clients encode slashes within a parameter as %2F.
      const escaped = yield* ask(full, 200, { path: `/v1/audit/tile/0/${encodeURIComponent("000.p/1")}` })
      assert.strictEqual(escaped.text, asWritten.text)
    }
  )

  it.effect("lists the response headers of GET /health and GET /v1/status", function* () {
    const ask = yield* makeAsk
    yield* ask("GET /health", 200)
    yield* ask("GET /v1/status", 200)
  })

  it.effect("lists the response headers of a stale answer during an outage", function* () {
    const ask = yield* makeAsk
    const { newKey, travel } = yield* RunningService.RunningService
    const sandbox = yield* Sandbox
    const more = { path: "/v1/validate/ATU10440002", key: yield* newKey }
    yield* ask("GET /v1/validate/{vat_id}", 200, more)
    yield* sandbox.configure({ vies_available: false })
    yield* travel("25 hours")
    yield* ask("GET /v1/validate/{vat_id}", 200, { ...more, sends: ["warning"] })
  })
})
