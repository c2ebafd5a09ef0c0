/** Records the examples of the OpenAPI document from responses of a service that calls the sandbox instead of the official sources. */
import { expect } from "@effect/vitest"
import { Effect, Fiber, Schema } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Sandbox } from "#test/support/Sandbox.ts"
import { checkpointOf, newAuditor, signing, temporaryFolder } from "#test/support/Auditing.ts"
import { command } from "#test/support/CommandLine.ts"
import { described, namedOperations } from "#test/support/Description.ts"
import * as MailedTokens from "#test/support/MailedTokens.ts"
import { why } from "#test/support/Operations.ts"
import { whileLocked } from "#test/support/Outages.ts"
import { confirm, muster, newPaidKey, receiptIdOf, receiptsPath } from "#test/support/PaidKey.ts"
import * as People from "#test/support/People.ts"
import { send } from "#test/support/RawHttp.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { Ask, Reply } from "#test/support/ServiceClient.ts"
import { assert, it, layer } from "#test/support/Test.ts"

const file = join(import.meta.dirname, "../../../src/http/openapi/examples.json")

/** Examples by their path in the file. Tabs separate the segments of a path. */
type Examples = Map<string, unknown>

const NestedExamples = Schema.Struct({
  errors: Schema.Record(Schema.String, Schema.Json),
  requests: Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Json)),
  responses: Schema.Record(
    Schema.String,
    Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Json)))
  )
})
const decodeFile = Schema.decodeUnknownSync(Schema.fromJsonString(NestedExamples))

const separator = "\t"

/** Returns the examples that examples.json has. */
const kept = (): Examples => {
  const { errors, requests, responses } = decodeFile(readFileSync(file, "utf8"))
  return new Map([
    ...Object.entries(errors).map(([code, value]) => [["errors", code].join(separator), value] as const),
    ...Object.entries(requests).flatMap(([id, named]) =>
      Object.entries(named).map(([name, value]) => [["requests", id, name].join(separator), value] as const)
    ),
    ...Object.entries(responses).flatMap(([id, byStatus]) =>
      Object.entries(byStatus).flatMap(([status, byType]) =>
        Object.entries(byType).flatMap(([type, named]) =>
          Object.entries(named).map(([name, value]) => [["responses", id, status, type, name].join(separator), value] as const)
        )
      )
    )
  ])
}

/** Returns the text of examples.json with these examples. */
const written = (examples: Examples): string => {
  const nest = (entries: ReadonlyArray<readonly [ReadonlyArray<string>, unknown]>): unknown => {
    const [first] = entries
    if (first !== undefined && first[0].length === 0) return first[1]
    const byHead = Map.groupBy(entries, ([[head = ""]]) => head)
    return Object.fromEntries(
      [...byHead].map(([head, within]) => [head, nest(within.map(([path, value]) => [path.slice(1), value] as const))])
    )
  }
  const sorted = [...examples].toSorted(([one], [other]) => (one < other ? -1 : 1))
  return `${JSON.stringify(nest(sorted.map(([path, value]) => [path.split(separator), value] as const)), null, 2)}\n`
}

/** Returns an example as text, without the values that differ in each run and with only the first line of each text. */
const shapeOf = (value: unknown): string =>
  JSON.stringify(value, (_, part: unknown) => (typeof part === "string" ? part.split("\n", 1)[0] : part))
    .replace(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/gu, "<uuid>")
    .replace(/svc_(?:live|audit)_\w+/gu, "<secret>")
    .replace(/VP-QC-\d{8}-[A-Z\d]{10}/gu, "<receipt>")
    .replace(/\d{4}-\d\d(?:-\d\d)?(?:T[\d:.]+(?:Z|\+\d\d:\d\d))?/gu, "<time>")
    .replace(/[\da-f]{16,}|WAPI\w+|[\w+/=.-]{20,}/gu, "<bytes>")
    .replace(/(?<=\\?"(?:attempts|latency_ms|duration_ms|mean_ms|max_ms|position|version)\\?":)\d+/gu, "<number>")

layer(RunningService.layerGround, { excludeTestServices: true })("the examples of openapi.json", (it) => {
  it.effect(
    "equal the service's responses (to record them: npm run test:only -- test/http/openapi/OpenApiExamples.test.ts -u)",
    function* () {
      const fresh = yield* record
      const before = kept()
      // Keeps a recorded example if the new response differs only in values that change with each run.
      for (const [place, value] of before) {
        if (fresh.has(place) && shapeOf(fresh.get(place)) === shapeOf(value)) fresh.set(place, value)
      }
      // oxlint-disable-next-line vitest/no-standalone-expect -- the rule does not see that this is in a test
      yield* Effect.promise(() => expect(written(fresh)).toMatchFileSnapshot(file))
    }
  )
})

/** Calls every operation, and returns the responses as examples. */
const record = Effect.gen(function* () {
  const examples: Examples = new Map()
  const sandbox = yield* Sandbox
  const PUBLIC_URL = "https://vat.example"
  const limits = { PLAN_FREE_PER_MONTH: "100", PLAN_STARTER_PER_MINUTE: "2" }
  const site = { PUBLIC_URL, CONTACT: "help@vat.example" }
  const service = yield* RunningService.start({ ...limits, ...site, ...signing(yield* temporaryFolder) })

  const keep = (operationId: string, name: string, reply: Reply) => {
    const type = (reply.headers["content-type"] ?? "").split(";", 1).join("")
    examples.set(
      ["responses", operationId, String(reply.status), type, name].join(separator),
      type === "application/json" ? reply.body : reply.text
    )
    return reply
  }
  const keepError = (code: string, reply: Reply) => {
    assert.containSubset(reply.body, { error: { code } }, reply.text)
    examples.set(["errors", code].join(separator), reply.body)
  }
  const post = Effect.fnUntraced(function* (operationId: string, name: string, path: string, body: unknown, more: Ask = {}) {
    examples.set(["requests", operationId, name].join(separator), body)
    return keep(operationId, name, yield* service.post(path, body, more))
  })
  const get = (operationId: string, name: string, path: string, more: Ask = {}) =>
    Effect.map(service.get(path, more), (reply) => keep(operationId, name, reply))

  yield* get("getHealth", "up", "/health")
  yield* get("getSourceStatus", "all answer", "/v1/status")

  // Records validations with an API key.
  const registered = yield* post("registerAgent", "agent", "/v1/register", { agent_id: "invoice-agent/2.1" })
  examples.set(["requests", "registerAgent", "email"].join(separator), { email: "ada@example.com" })
  const { api_key: key } = yield* decodeRegistered(registered.body)
  const paid = yield* newPaidKey(service)
  const validation = "/v1/validate/ATU12345678"
  yield* get("validateVatId", "valid", validation, { key })
  yield* get("validateVatId", "from the cache", validation, { key })
  yield* get("validateVatId", "invalid", "/v1/validate/DE100999200", { key })
  yield* get("validateVatId", "consultation number", "/v1/validate/FR40100440000", {
    key,
    query: { requester_vat_id: "DE811115368" }
  })
  yield* get("getSourceHistory", "one member state", "/v1/status/history", { query: { member_state: "FR", days: "1" } })
  const invoiced = { ...muster, reference: "INV-2026-0042" }
  const confirmed = keep("validateVatId", "qualified confirmation", yield* confirm(service, "DE811115368", paid, invoiced))
  const letters = { ...muster, company_name: "Another GmbH", match_format: "letters" }
  keep("validateVatId", "qualified confirmation in letters", yield* confirm(service, "DE100440000", paid, letters))
  yield* get("getUsage", "free plan", "/v1/usage", { key })
  const submissions = "/v1/validations"
  // After two seconds the first attempt has failed, so the response always shows its failure.
  const later = { key, headers: { prefer: "respond-async, wait=2" } }
  yield* post("submitValidation", "answered at once", submissions, { vat_id: "ATU12345678", reference: "INV-2026-0042" }, { key })
  const submitted = yield* post(
    "submitValidation",
    "no source answers",
    submissions,
    { vat_id: "MT10999301", expires_in: 86_400 },
    later
  )
  const { validation_id } = yield* decodeSubmitted(submitted.body)
  const pending = yield* Effect.repeat(service.get(`${submissions}/${validation_id}`, { key }), {
    until: ({ text }) => text.includes("MS_UNAVAILABLE")
  })
  keep("getValidation", "pending", pending)
  yield* get("listValidations", "pending", submissions, { key, query: { status: "pending" } })
  keep("cancelValidation", "cancelled", yield* service.ask(`${submissions}/${validation_id}`, { key, method: "DELETE" }))
  const batches = "/v1/batches"
  const items = [
    { custom_id: "customer-1", vat_id: "ATU12345678" },
    { custom_id: "customer-2", vat_id: "nonsense" }
  ]
  examples.set(["requests", "submitBatch", "ndjson"].join(separator), items.map((item) => `${JSON.stringify(item)}\n`).join(""))
  examples.set(
    ["requests", "submitBatch", "csv"].join(separator),
    `custom_id,vat_id\n${items.map(({ custom_id, vat_id }) => `${custom_id},${vat_id}`).join("\n")}\n`
  )
  const batch = yield* post("submitBatch", "answered while it waits", batches, { items }, { key, headers: { prefer: "wait=20" } })
  const { batch_id } = yield* decodeBatch(batch.body)
  yield* get("getBatch", "finished", `${batches}/${batch_id}`, { key })
  yield* get("listBatches", "one batch", batches, { key })
  for (const accept of ["application/json", "application/x-ndjson", "text/csv"])
    yield* get("listBatchResults", "finished", `${batches}/${batch_id}/results`, { key, headers: { accept } })
  const open = yield* service.post(batches, { items: [{ custom_id: "customer-3", vat_id: "MT10999301" }] }, { key })
  const { batch_id: openId } = yield* decodeBatch(open.body)
  keep("cancelBatch", "cancelled", yield* service.post(`${batches}/${openId}/cancel`, undefined, { key }))
  const areComplete = ({ text }: Reply) => text.split("batch.completed").length === 3
  const updates = yield* Effect.repeat(service.get("/v1/updates", { key }), { until: areComplete })
  keep("listUpdates", "a validation and two batches", updates)
  const receiptId = yield* receiptIdOf(confirmed)
  yield* get("getQualifiedConfirmation", "receipt", `${receiptsPath}/${receiptId}`, { key: paid })
  yield* get("listQualifiedConfirmations", "page", receiptsPath, { key: paid, query: { limit: "1" } })
  const links = `${receiptsPath}/${receiptId}/links`
  const shared = yield* post("createReceiptLink", "two weeks", links, { expires_in_days: 14 }, { key: paid })
  const { link_id } = yield* decodeShared(shared.body)
  yield* get("listReceiptLinks", "one link", links, { key: paid })
  keep("revokeReceiptLink", "revoked", yield* service.ask(`${links}/${link_id}`, { key: paid, method: "DELETE" }))

  // Records the account and its keys.
  const credentials = { email: "ada@example.com", password: "correct horse battery" }
  const signUp = "/v1/auth/signup"
  yield* post("signUp", "program", signUp, credentials)
  const person = { ...credentials, email: "grace@example.com" }
  yield* post("signUp", "person", signUp, person, { headers: { "user-agent": People.browser } })
  const [mailed = ""] = yield* MailedTokens.tokensFor(person.email, 1)
  yield* post("verifyEmail", "confirmed", "/v1/auth/verify-email", { token: mailed })
  const other = { ...credentials, email: "edith@example.com" }
  const asBrowser = { headers: { "user-agent": People.browser } }
  yield* service.post(signUp, other, asBrowser)
  const [link = ""] = yield* MailedTokens.tokensFor(other.email, 1)
  yield* get("verifyEmailByLink", "confirmed", "/v1/auth/verify-email", { query: { token: link } })
  const late = { ...credentials, email: "barbara@example.com" }
  yield* service.post(signUp, late, asBrowser)
  const [expired = ""] = yield* MailedTokens.tokensFor(late.email, 1)
  const login = yield* post("logIn", "password", "/v1/auth/login", credentials)
  const access = People.bearing(yield* People.tokenIn(login))
  const keys = "/v1/auth/api-keys"
  const created = yield* post("createApiKey", "named", keys, { name: "Shop, production" }, access)
  yield* get("listApiKeys", "keys", keys, access)
  const { id } = yield* decodeCreated(created.body)
  const agent = yield* decodeRegistered((yield* service.post("/v1/register", { agent_id: "claimed" })).body)
  yield* post("claimApiKey", "agent", `${keys}/claim`, { api_key: agent.api_key }, access)
  const rival = People.bearing((yield* People.newUser(service)).token)
  keepError("API_KEY_NOT_CLAIMABLE", yield* service.post(`${keys}/claim`, { api_key: agent.api_key }, rival))
  keep("revokeApiKey", "revoked", yield* service.ask(`${keys}/${id}`, { ...access, method: "DELETE" }))

  const short = yield* decodeRegistered((yield* service.post("/v1/register", { agent_id: "short-lived" })).body)
  const rotated = yield* post("rotateApiKey", "leaked", "/v1/keys/rotate", { revoke_old: true }, { key: short.api_key })
  const { key: former } = yield* decodeRotated(rotated.body)
  const { key: replacement } = yield* decodeRotated((yield* service.post("/v1/keys/rotate", {}, { key: former })).body)
  keepError("API_KEY_REPLACED", yield* service.ask("/v1/keys/self", { key: former, method: "DELETE" }))
  keep("revokeOwnApiKey", "revoked", yield* service.ask("/v1/keys/self", { key: replacement, method: "DELETE" }))

  // Records the password reset.
  const reset = "/v1/auth/password-reset"
  yield* post("requestPasswordReset", "address", reset, { email: credentials.email })
  const [secret = ""] = yield* MailedTokens.tokensFor(credentials.email, 1, "password-reset")
  const password = "another horse battery"
  yield* post("resetPassword", "token of the mail", `${reset}/confirm`, { token: secret, password })
  const again = yield* service.post("/v1/auth/login", { ...credentials, password })
  const change = { current_password: password, new_password: "a third horse battery" }
  yield* post("changePassword", "both", "/v1/auth/password", change, People.bearing(yield* People.tokenIn(again)))

  // Records the endpoints of the log.
  const auditor = { headers: (yield* newAuditor()).headers }
  const byReceipt = { query: { receipt_id: receiptId } }
  const page = yield* get("listAuditEvents", "one receipt", "/v1/audit/events", { ...auditor, ...byReceipt })
  yield* get("listAuditEvents", "one receipt", "/v1/audit/events", {
    ...byReceipt,
    headers: { ...auditor.headers, accept: "application/x-ndjson" }
  })
  yield* get("listAuditEvents", "one receipt", "/v1/audit/events", {
    ...byReceipt,
    headers: { ...auditor.headers, accept: "text/csv" }
  })
  const [event] = (yield* decodeEvents(page.body)).data
  const position = event?.position ?? -1
  yield* get("getAuditEvent", "receipt", `/v1/audit/events/${position}`, auditor)
  yield* checkpointOf(service, position + 1)
  const proof = `/v1/audit/proofs/${receiptId}`
  yield* get("getAuditProof", "receipt", proof, auditor)
  yield* get("getAuditProof", "receipt", proof, { headers: { ...auditor.headers, accept: "application/json" } })
  yield* get("getCheckpoint", "checkpoint", "/v1/audit/checkpoint")

  // Records one response for each error code.
  const starter = yield* newPaidKey(service, "starter")
  for (const _ of [1, 2]) yield* service.get(validation, { key: starter })
  const used = yield* service.newKey
  yield* RunningService.setQuota(used, 2)
  for (const _ of [1, 2]) yield* service.get(validation, { key: used })
  const register = (body: unknown) => service.post("/v1/register", body)
  const plain = (type: string, body: string) =>
    send(service.port, "POST /v1/register HTTP/1.1", [`content-type: ${type}`, `content-length: ${body.length}`], body)
  const idempotent = (vat_id: string) =>
    service.post(submissions, { vat_id }, { key, headers: { "idempotency-key": "8e03978e-40d5-43dd-bc93-6894a57f9324" } })
  yield* sandbox.configure({ latency_ms: 500 })
  const slow = yield* Effect.forkChild(idempotent("ATU10440005"))
  yield* sandbox.until(({ vies }) => vies.in_flight === 1)
  keepError("IDEMPOTENCY_IN_PROGRESS", yield* idempotent("ATU10440005"))
  yield* Fiber.join(slow)
  yield* sandbox.configure({ latency_ms: 0 })
  const errors = [
    ["IDEMPOTENCY_KEY_REUSED", idempotent("ATU12345678")],
    ["VALIDATION_ERROR", service.get(validation, { key, query: { force_live: "maybe" } })],
    ["INVALID_VAT_ID", service.get("/v1/validate/GB123456789", { key })],
    ["INVALID_REQUESTER_VAT_ID", confirm(service, "DE811115368", paid, { ...muster, requester_vat_id: "ATU12345678" })],
    ["QUALIFIED_CONFIRMATION_UNSUPPORTED", confirm(service, "ATU12345678", paid)],
    ["DISPOSABLE_EMAIL", register({ email: "ada@mailinator.com" })],
    ["INVALID_TOKEN", service.get("/v1/auth/verify-email", { query: { token: "0".repeat(64) } })],
    ["UNAUTHORIZED", service.get("/v1/usage")],
    ["PAYMENT_REQUIRED", service.get(validation, { key: used })],
    ["NOT_FOUND", service.get(`${receiptsPath}/VP-QC-20261120-A7K2M9P4R3`, { key })],
    ["CONFLICT", service.post(signUp, credentials)],
    ["PAYLOAD_TOO_LARGE", register({ agent_id: "x".repeat(20_000) })],
    ["UNSUPPORTED_MEDIA_TYPE", plain("text/plain", "agent_id=me")],
    ["QUALIFIED_CONFIRMATION_REFUSED", confirm(service, "DE100990006", paid, { company_name: "Muster GmbH" })],
    ["RATE_LIMIT_EXCEEDED", service.get(validation, { key: starter })],
    ["REQUEST_HEADER_FIELDS_TOO_LARGE", send(service.port, "GET /health HTTP/1.1", [`x-large: ${"x".repeat(40_000)}`])],
    [
      "RECEIPT_ERASED",
      Effect.andThen(
        command("personal-data", "erase", receiptId, ...why),
        service.get(`${receiptsPath}/${receiptId}`, { key: paid })
      )
    ],
    ["SOURCE_UNAVAILABLE", service.get("/v1/validate/FI10999301", { key })]
  ] as const
  for (const [code, reply] of errors) keepError(code, yield* reply)
  yield* service.travel("25 hours")
  keepError("TOKEN_EXPIRED", yield* service.get("/v1/auth/verify-email", { query: { token: expired } }))
  keepError("SERVICE_UNAVAILABLE", yield* whileLocked(service, "api_keys", service.get("/v1/usage", { key })))
  return examples
})

const decodeRegistered = Schema.decodeUnknownEffect(Schema.Struct({ api_key: Schema.String }))
const decodeBatch = Schema.decodeUnknownEffect(Schema.Struct({ batch_id: Schema.String }))
const decodeSubmitted = Schema.decodeUnknownEffect(Schema.Struct({ validation_id: Schema.String }))
const decodeShared = Schema.decodeUnknownEffect(Schema.Struct({ link_id: Schema.String }))
const decodeCreated = Schema.decodeUnknownEffect(Schema.Struct({ id: Schema.String }))
const decodeRotated = Schema.decodeUnknownEffect(Schema.Struct({ key: Schema.String }))
const decodeEvents = Schema.decodeUnknownEffect(Schema.Struct({ data: Schema.Array(Schema.Struct({ position: Schema.Int })) }))

const hasExamples = (content: unknown) =>
  Schema.is(Schema.Struct({ examples: Schema.Record(Schema.String, Schema.Json) }))(content)

/** What to do if an operation has no example. The first run with -u writes the examples, and only the next run reads them. */
const remedy = "call the operation in `record`, then run this test with -u twice"

/** Media types of pages and files, which have no example. */
const files = new Set(["text/html", "application/pdf", "application/octet-stream"])

it.each(namedOperations)("%s has an example of its body and of each response", (_, { operation }) => {
  for (const content of Object.values(operation.requestBody?.content ?? {}))
    assert.isTrue(hasExamples(content), `The body has no example: ${remedy}`)
  for (const [status, { content, description }] of Object.entries(operation.responses)) {
    for (const [type, body] of Object.entries(content)) {
      if (!files.has(type)) assert.isTrue(hasExamples(body), `${status} ${type} has no example: ${remedy}`)
    }
    if (Number(status) < 400) continue
    const codes = [...description.matchAll(/^- `([A-Z_]+)`/gmu)].map(([, code = ""]) => code)
    for (const code of codes) assert.isDefined(described.components.examples[code], code)
  }
})
