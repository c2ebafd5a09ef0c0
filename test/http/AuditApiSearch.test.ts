import { assert, layer } from "@effect/vitest"
import { DateTime, Effect } from "effect"
import { businessCaller, eventsIn, typesOf } from "#test/support/AuditedCaller.ts"
import { newAuditor } from "#test/support/Auditing.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"

layer(RunningService.layer(), { excludeTestServices: true })("GET /v1/audit/events", (it) => {
  it.effect("takes a day as a whole, and a moment as it is", () =>
    Effect.gen(function* () {
      const { get, newKey } = yield* RunningService.RunningService
      const { headers } = yield* newAuditor()
      yield* newKey
      const now = yield* DateTime.now
      const day = (days: number) => DateTime.formatIsoDateUtc(DateTime.add(now, { days }))
      const count = Effect.fnUntraced(function* (query: Readonly<Record<string, string>>) {
        const reply = yield* get("/v1/audit/events", { headers, query: { type: "ApiKeyIssued", ...query } })
        assert.strictEqual(reply.status, 200, reply.text)
        return (yield* eventsIn(reply.body)).data.length
      })
      assert.strictEqual(yield* count({ from: day(0), to: day(0) }), 1)
      assert.strictEqual(yield* count({ to: day(0) }), 1)
      assert.strictEqual(yield* count({ to: `${day(0)}T00:00:00Z` }), 0)
      assert.strictEqual(yield* count({ to: day(-1) }), 0)
      assert.strictEqual(yield* count({ from: day(1) }), 0)
      assert.strictEqual(yield* count({ from: "1970-01-01", to: "9999-12-31" }), 1)
      for (const to of ["+010000-01-02T00:00:00Z", "2026-13-01", "22.11.", ""]) {
        assertProblem(yield* get("/v1/audit/events", { headers, query: { to } }), "VALIDATION_ERROR")
      }
    })
  )

  it.effect("shows what one API key did, by its id or by its prefix within an account", () =>
    Effect.gen(function* () {
      const { get } = yield* RunningService.RunningService
      const one = yield* businessCaller
      const other = yield* businessCaller
      const { headers } = yield* newAuditor()
      const ofOne = yield* newAuditor(one.accountId)
      const read = (as: Readonly<Record<string, string>>, query: Readonly<Record<string, string>>) =>
        Effect.flatMap(get("/v1/audit/events", { headers: as, query }), ({ body }) => Effect.map(eventsIn(body), typesOf))
      const prefix = one.key.slice(0, 12)
      const all = ["ApiKeyIssued", "VatIdVerified", "ReceiptIssued"]
      assert.deepStrictEqual(yield* read(headers, { key: one.keyId }), all)
      assert.deepStrictEqual(yield* read(headers, { key: prefix, account_id: one.accountId }), all)
      assert.deepStrictEqual(yield* read(ofOne.headers, { key: prefix }), all)
      assert.deepStrictEqual(yield* read(headers, { key: one.keyId, type: "VatIdVerified" }), ["VatIdVerified"])
      assert.deepStrictEqual(yield* read(headers, { key: one.keyId, vat_id: "DE123456789" }), ["ReceiptIssued"])
      // Of another account, and a prefix that tells no key.
      assert.deepStrictEqual(yield* read(ofOne.headers, { key: other.keyId }), [])
      assert.deepStrictEqual(yield* read(headers, { key: one.keyId, account_id: other.accountId }), [])
      assertProblem(yield* get("/v1/audit/events", { headers, query: { key: prefix } }), "VALIDATION_ERROR")
      const lower = one.receiptId.toLowerCase()
      assert.deepStrictEqual(yield* read(headers, { receipt_id: lower }), ["ReceiptIssued"])
      assert.strictEqual((yield* get(`/v1/qualified-confirmations/${lower}`, { key: one.key })).status, 200)
    })
  )

  it.effect("is a table for spreadsheets where that is asked for", () =>
    Effect.gen(function* () {
      const { get } = yield* RunningService.RunningService
      const { accountId, keyId, receiptId } = yield* businessCaller
      const { headers } = yield* newAuditor()
      const reply = yield* get("/v1/audit/events", {
        headers: { ...headers, accept: "text/csv" },
        query: { account_id: accountId, type: "ReceiptIssued" }
      })
      assert.strictEqual(reply.headers["content-type"], "text/csv; charset=utf-8; header=present")
      const rows = reply.text.split("\r\n")
      assert.match(rows[0] ?? "", /^"position","recorded_on","recorded_at",/u)
      assert.lengthOf(rows, 3)
      for (const text of [accountId, keyId, "DE123456789", receiptId, "Musterfirma GmbH"]) assert.include(rows[1], `"${text}"`)
    })
  )
})
