/** Calls every endpoint of a running service, with variants of requests that run different SQL statements. */
import { assert } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { fromEntropy, prefixOf } from "#domain/accounts/ApiKey.ts"
import { newAuditor } from "#test/support/Auditing.ts"
import { staleVatId } from "#test/support/FilledLog.ts"
import * as MailedTokens from "#test/support/MailedTokens.ts"
import { confirm, newPaidKey, receiptIdOf, receiptsPath } from "#test/support/PaidKey.ts"
import * as People from "#test/support/People.ts"
import type * as RunningService from "#test/support/RunningService.ts"
import type { Ask, ServiceClient } from "#test/support/ServiceClient.ts"
import * as Rows from "#test/support/Rows.ts"

/** Limits of the plans. They are low for starter and enterprise, so that a run exceeds them, and high for the others. */
export const settings: RunningService.Settings = {
  PLAN_BUSINESS_PER_MONTH: "1000000",
  PLAN_BUSINESS_PER_MINUTE: "100000",
  PLAN_STARTER_PER_MONTH: "1",
  PLAN_ENTERPRISE_PER_MINUTE: "2",
  VIES_PER_DAY: "1000000"
}

/** The API key with the most events and receipts, and one of its receipts. */
export interface Busy {
  readonly key: string
  readonly keyId: string
  readonly accountId: string
  readonly receiptId: string
}

/** Options of `drive`. `run` is the number of the run on a database. `isFilled` is true after FilledLog.fill. */
export interface Drive {
  readonly busy: Busy
  readonly run: number
  readonly isFilled: boolean
}

const decodeNext = Schema.decodeUnknownEffect(Schema.Struct({ next_cursor: Schema.NullOr(Schema.String) }))

const decodeSubmitted = Schema.decodeUnknownEffect(Schema.Struct({ validation_id: Schema.String }))

const decodeShared = Schema.decodeUnknownEffect(Schema.Struct({ link_id: Schema.String, url: Schema.String }))

const idsOf = Effect.fnUntraced(function* (key: string) {
  return yield* Rows.one(
    { account_id: Schema.String, key_id: Schema.String },
    (sql) => sql`SELECT account_id, key_id FROM vatproof.api_keys WHERE key_sha256 = sha256(${key}::text::bytea)`
  )
})

/** Creates a key with a validation and a receipt, whose rows FilledLog.fill copies. */
export const makeBusy = Effect.fnUntraced(function* (service: ServiceClient) {
  const key = yield* newPaidKey(service)
  assert.strictEqual((yield* service.validate("ATU12345678", { key })).status, 200)
  const receiptId = yield* Effect.flatMap(confirm(service, "DE100440000", key), receiptIdOf)
  const { account_id: accountId, key_id: keyId } = yield* idsOf(key)
  return { key, keyId, accountId, receiptId } satisfies Busy
})

/** Returns a function that sends a request and asserts its status: an unexpected error would run fewer SQL statements. */
const make = (service: ServiceClient, asked: Set<string>) =>
  Effect.fnUntraced(function* (status: number, operation: string, path: string, more: Ask = {}) {
    const [method = ""] = operation.split(" ")
    const reply = yield* service.ask(path, {
      ...more,
      method: method === "POST" ? "POST" : method === "DELETE" ? "DELETE" : "GET"
    })
    assert.strictEqual(reply.status, status, `${operation} ${path}: ${reply.text}`)
    asked.add(operation)
    return reply
  })
type Expect = ReturnType<typeof make>

const validate = "GET /v1/validate/{vat_id}"

const validations = Effect.fnUntraced(function* (service: ServiceClient, expect: Expect, { busy, isFilled, run }: Drive) {
  const of = (status: number, vatId: string, more: Ask = {}) => expect(status, validate, `/v1/validate/${vatId}`, more)
  const fresh = `ATU1${String(run).padStart(3, "0")}5500`
  const { key } = busy
  yield* of(200, fresh, { from: `10.1.0.${run}` })
  yield* of(200, fresh, { from: `10.1.0.${run}` })
  yield* of(200, fresh, { key })
  yield* of(200, fresh, { key })
  yield* of(200, fresh, { key, query: { force_live: "true" } })
  yield* Effect.all(
    Array.from({ length: 40 }, (_, index) => of(200, fresh, index % 2 === 0 ? { key } : { from: `10.2.0.${index}` })),
    {
      concurrency: 40
    }
  )
  yield* of(400, "XX1", { key })
  yield* of(isFilled ? 200 : 503, staleVatId, { key })
  yield* of(503, "FI10999301", { key })
  // A well-formed API key that was never issued.
  yield* of(401, fresh, { key: fromEntropy(new Uint8Array(64).fill(7)) ?? "" })
  const starter = yield* newPaidKey(service, "starter")
  yield* of(200, fresh, { key: starter })
  yield* of(429, fresh, { key: starter })
  const hasty = yield* newPaidKey(service, "enterprise")
  for (const status of [200, 200, 429]) yield* of(status, fresh, { key: hasty })
  yield* of(402, "DE100440001", {
    key: yield* service.newKey,
    query: { company_name: "Muster GmbH", requester_vat_id: "DE811115368" }
  })
})

const passwordReset = Effect.fnUntraced(function* (expect: Expect, email: string) {
  const path = "/v1/auth/password-reset"
  yield* expect(202, `POST ${path}`, path, { body: { email } })
  const [token = ""] = yield* MailedTokens.tokensFor(email, 1, "password-reset")
  yield* expect(200, `GET ${path}`, path, { query: { token } })
  yield* expect(200, `POST ${path}/confirm`, `${path}/confirm`, { body: { token, password: "a third password" } })
})

const accounts = Effect.fnUntraced(function* (service: ServiceClient, expect: Expect, run: number) {
  const email = `person${run}@example.com`
  yield* expect(201, "POST /v1/register", "/v1/register", { body: { agent_id: `agent ${run}` } })
  const key = yield* service.newKey
  yield* expect(201, "POST /v1/keys/rotate", "/v1/keys/rotate", { key })
  yield* expect(200, "DELETE /v1/keys/self", "/v1/keys/self", { key: yield* service.newKey })
  const signup = { email, password: People.password }
  const asBrowser: Ask = { headers: { "user-agent": People.browser } }
  yield* expect(201, "POST /v1/auth/signup", "/v1/auth/signup", { ...asBrowser, body: signup })
  // Signs up again, which requests another mail.
  yield* service.post("/v1/auth/signup", signup, asBrowser)
  const [token = ""] = yield* MailedTokens.tokensFor(email, 1)
  const verify = "/v1/auth/verify-email"
  yield* expect(400, `GET ${verify}`, verify, { query: { token: "0".repeat(64) } })
  yield* expect(200, `POST ${verify}`, verify, { body: { token } })
  yield* expect(401, "POST /v1/auth/login", "/v1/auth/login", { body: { email, password: "wrong horse" } })
  yield* expect(401, "POST /v1/auth/login", "/v1/auth/login", {
    body: { email: `unknown${run}@example.com`, password: "x".repeat(12) }
  })
  const login = yield* expect(200, "POST /v1/auth/login", "/v1/auth/login", { body: signup })
  const change = { current_password: People.password, new_password: "another password" }
  const session = People.bearing(yield* People.tokenIn(login))
  yield* expect(200, "POST /v1/auth/password", "/v1/auth/password", { ...session, body: change })
  yield* passwordReset(expect, email)
  const access = People.bearing(
    yield* People.tokenIn(yield* service.post("/v1/auth/login", { email, password: "a third password" }))
  )
  const keys = "/v1/auth/api-keys"
  const made = yield* expect(201, `POST ${keys}`, keys, { ...access, body: { name: "Shop" } })
  const { id } = yield* Schema.decodeUnknownEffect(Schema.Struct({ id: Schema.String }))(made.body)
  yield* expect(200, `GET ${keys}`, keys, access)
  const found = yield* service.newKey
  yield* expect(200, `POST ${keys}/claim`, `${keys}/claim`, { ...access, body: { api_key: found } })
  yield* expect(200, `GET ${receiptsPath}`, receiptsPath, access)
  yield* expect(200, `DELETE ${keys}/{id}`, `${keys}/${id}`, access)
  yield* expect(404, `DELETE ${keys}/{id}`, `${keys}/svc_live_000`, access)
})

const receipts = Effect.fnUntraced(function* (service: ServiceClient, expect: Expect, { key, receiptId }: Busy) {
  assert.strictEqual((yield* confirm(service, "DE100440001", key)).status, 200)
  // The BZSt rejects this VAT ID (docs/sandbox.md).
  yield* expect(422, validate, "/v1/validate/DE100990004", {
    key,
    query: { company_name: "Muster GmbH", requester_vat_id: "DE811115368" }
  })
  // Page and PDF run the same statements as JSON.
  yield* expect(200, `GET ${receiptsPath}/{receipt_id}`, `${receiptsPath}/${receiptId}`, { key })
  yield* expect(404, `GET ${receiptsPath}/{receipt_id}`, `${receiptsPath}/VP-QC-20261101-0000000000`, { key })
  const links = `${receiptsPath}/${receiptId}/links`
  const shared = yield* expect(201, `POST ${receiptsPath}/{receipt_id}/links`, links, { key, body: {} })
  const { link_id, url } = yield* decodeShared(shared.body)
  yield* expect(200, `GET ${receiptsPath}/{receipt_id}/links`, links, { key })
  yield* expect(200, "GET /v1/receipt-links/{token}", new URL(url).pathname)
  yield* expect(200, `DELETE ${receiptsPath}/{receipt_id}/links/{link_id}`, `${links}/${link_id}`, { key })
  for (const query of [{ limit: "2" }, { limit: "1", target_vat_id: "DE100440000" }]) {
    const page = yield* expect(200, `GET ${receiptsPath}`, receiptsPath, { key, query })
    const { next_cursor } = yield* decodeNext(page.body)
    if (next_cursor !== null) {
      yield* expect(200, `GET ${receiptsPath}`, receiptsPath, { key, query: { ...query, cursor: next_cursor } })
    }
  }
  yield* expect(200, "GET /v1/usage", "/v1/usage", { key })
})

const submitted = Effect.fnUntraced(function* (service: ServiceClient, expect: Expect, run: number) {
  // Uses a new key, because most events of the busy key are receipts.
  const key = yield* service.newKey
  const path = "/v1/validations"
  const submit = (status: number, vat_id: string, headers: Ask["headers"] = {}) =>
    expect(status, `POST ${path}`, path, { key, headers, body: { vat_id, reference: `INV-${run}` } })
  const fresh = `ATU1${String(run).padStart(3, "0")}5600`
  const later = { prefer: "respond-async" }
  const keyed = { "idempotency-key": `every endpoint ${run}` }
  yield* submit(200, fresh)
  yield* submit(200, fresh, later)
  yield* submit(200, fresh, keyed)
  yield* submit(200, fresh, keyed)
  const pending = yield* submit(202, "MT10999301", later)
  const { validation_id } = yield* decodeSubmitted(pending.body)
  yield* expect(200, `GET ${path}/{validation_id}`, `${path}/${validation_id}`, { key, query: { wait: "2" } })
  yield* expect(200, `DELETE ${path}/{validation_id}`, `${path}/${validation_id}`, { key })
  for (const query of [{}, { status: "final" }, { vat_id: fresh }, { reference: `INV-${run}`, status: "cancelled" }]) {
    const page = yield* expect(200, `GET ${path}`, path, { key, query: { ...query, limit: "1" } })
    const { next_cursor } = yield* decodeNext(page.body)
    if (next_cursor !== null)
      yield* expect(200, `GET ${path}`, path, { key, query: { ...query, limit: "1", cursor: next_cursor } })
  }
  const updates = "/v1/updates"
  yield* expect(200, `GET ${updates}`, updates, { key, query: { limit: "1" } })
  yield* expect(200, `GET ${updates}`, updates, { key, query: { after: "now", wait: "1", types: "validation.final" } })
})

const batches = Effect.fnUntraced(function* (service: ServiceClient, expect: Expect, run: number) {
  const key = yield* newPaidKey(service)
  const path = "/v1/batches"
  const items = [1, 2].map((number) => ({ custom_id: `${number}`, vat_id: `ATU1${String(run).padStart(3, "0")}570${number}` }))
  const reply = yield* expect(202, `POST ${path}`, path, { key, headers: { prefer: "wait=10" }, body: { items } })
  const { batch_id } = yield* decodeBatch(reply.body)
  const one = `${path}/${batch_id}`
  yield* expect(200, `GET ${path}/{batch_id}`, one, { key })
  yield* expect(200, `GET ${path}/{batch_id}/results`, `${one}/results`, { key })
  const pending = [{ custom_id: "pending", vat_id: "MT10999301" }]
  const open = yield* expect(202, `POST ${path}`, path, { key, body: { items: pending } })
  const { batch_id: cancelled } = yield* decodeBatch(open.body)
  yield* expect(200, `POST ${path}/{batch_id}/cancel`, `${path}/${cancelled}/cancel`, { key, method: "POST" })
  yield* expect(200, `GET ${path}`, path, { key, query: { limit: "1" } })
})

const decodeBatch = Schema.decodeUnknownEffect(Schema.Struct({ batch_id: Schema.String }))

/** Returns the query parameters of an auditor's searches. Each search runs a different SQL statement. */
const filters = ({ accountId, key, keyId, receiptId }: Busy): ReadonlyArray<Readonly<Record<string, string>>> => {
  const one: ReadonlyArray<Readonly<Record<string, string>>> = [
    {},
    { type: "ReceiptIssued" },
    { type: "VatIdVerified" },
    { account_id: accountId },
    { account_id: accountId, type: "VatIdVerified" },
    { account_id: accountId, type: "ReceiptIssued" },
    { vat_id: "ATU20010007" },
    { vat_id: "DE100440000", type: "ReceiptIssued" },
    { receipt_id: receiptId },
    { receipt_id: receiptId, account_id: accountId },
    { key: prefixOf(key), account_id: accountId },
    { key: prefixOf(key), account_id: accountId, type: "VatIdVerified" },
    { key: prefixOf(key), account_id: accountId, vat_id: "DE100440000" },
    { key: keyId },
    { key: keyId, type: "ReceiptIssued" }
  ]
  const period = { from: "2026-01-01T00:00:00Z", to: "2999-01-01T00:00:00Z" }
  return [...one, ...one.map((filter) => ({ ...filter, ...period }))].map((filter) => ({ ...filter, limit: "5" }))
}

const audit = Effect.fnUntraced(function* (expect: Expect, busy: Busy) {
  const events = "/v1/audit/events"
  const { headers } = yield* newAuditor()
  const { headers: ofOne } = yield* newAuditor(busy.accountId)
  for (const query of filters(busy)) {
    const page = yield* expect(200, `GET ${events}`, events, { headers, query })
    const { next_cursor } = yield* decodeNext(page.body)
    if (next_cursor !== null) yield* expect(200, `GET ${events}`, events, { headers, query: { ...query, cursor: next_cursor } })
  }
  yield* expect(200, `GET ${events}`, events, { headers: ofOne, query: { limit: "5" } })
  yield* expect(200, `GET ${events}`, events, {
    headers: { ...ofOne, accept: "application/x-ndjson" },
    query: { type: "ApiKeyIssued" }
  })
  yield* expect(401, `GET ${events}`, events, { headers: { authorization: "Bearer svc_audit_none" } })
  yield* expect(200, `GET ${events}/{position}`, `${events}/1`, { headers })
  yield* expect(404, `GET ${events}/{position}`, `${events}/999999999`, { headers: ofOne })
  const proofs = "GET /v1/audit/proofs/{subject}"
  yield* expect(200, proofs, `/v1/audit/proofs/${busy.receiptId}`, { key: busy.key })
  yield* expect(200, proofs, `/v1/audit/proofs/${busy.receiptId}`, { headers: ofOne })
  yield* expect(200, proofs, "/v1/audit/proofs/2", { headers })
  yield* expect(200, "GET /v1/audit/checkpoint", "/v1/audit/checkpoint")
})

const tiles = Effect.fnUntraced(function* (expect: Expect, isFilled: boolean) {
  const tile = "GET /v1/audit/tile/{level}/{index}"
  yield* expect(isFilled ? 200 : 404, tile, "/v1/audit/tile/0/000")
  yield* expect(200, `${tile}.p/{width}`, "/v1/audit/tile/0/000.p/3")
})

/** Calls every endpoint with all variants of its requests. Returns the names of the called operations. */
export const drive = Effect.fnUntraced(function* (service: ServiceClient, options: Drive) {
  const { busy, isFilled, run } = options
  const asked = new Set<string>()
  const expect = make(service, asked)
  yield* expect(200, "GET /health", "/health")
  yield* expect(200, "GET /v1/status", "/v1/status")
  for (const days of [7, 90])
    yield* expect(200, "GET /v1/status/history", "/v1/status/history", { query: { days: String(days) } })
  // Concurrent, because mails, pending validations and batches take seconds.
  const parts = [
    accounts(service, expect, run),
    validations(service, expect, options),
    submitted(service, expect, run),
    batches(service, expect, run),
    receipts(service, expect, busy)
  ]
  yield* Effect.all(parts, { concurrency: "unbounded", discard: true })
  yield* audit(expect, busy)
  yield* tiles(expect, isFilled)
  return asked
})
