import { DateTime, Effect, Schema } from "effect"
import { prefixOf } from "#domain/accounts/ApiKey.ts"
import { vatIdEnding } from "#test/support/MagicVatIds.ts"
import { businessCaller, eventsIn, typesOf } from "#test/support/AuditedCaller.ts"
import { newAuditor } from "#test/support/Auditing.ts"
import { texts } from "#test/support/Batches.ts"
import { confirm, muster, receiptIdOf, receiptsPath } from "#test/support/PaidKey.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

const Referenced = Schema.Struct({
  data: Schema.Array(
    Schema.Struct({
      data: Schema.Record(Schema.String, Schema.Json),
      personal: Schema.optionalKey(Schema.NullOr(Schema.Struct({ reference: Schema.optionalKey(Schema.String) })))
    })
  )
})

layer(RunningService.layerShared(), { excludeTestServices: true })("GET /v1/audit/events", (it) => {
  it.effect("includes the whole day of a date in `from` or `to`, and compares a time exactly", function* () {
    const { get } = yield* RunningService.RunningService
    const { headers } = yield* newAuditor()
    const { accountId } = yield* businessCaller
    const now = yield* DateTime.now
    const day = (days: number) => DateTime.formatIsoDateUtc(DateTime.add(now, { days }))
    const count = Effect.fnUntraced(function* (query: Readonly<Record<string, string>>) {
      const reply = yield* get("/v1/audit/events", { headers, query: { type: "ApiKeyIssued", account_id: accountId, ...query } })
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

  it.effect("finds the events of an API key by the key's id, or by its prefix and account", function* () {
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
    // A key of another account has no results. A prefix without its account is an error.
    assert.deepStrictEqual(yield* read(ofOne.headers, { key: other.keyId }), [])
    assert.deepStrictEqual(yield* read(headers, { key: one.keyId, account_id: other.accountId }), [])
    assertProblem(yield* get("/v1/audit/events", { headers, query: { key: prefix } }), "VALIDATION_ERROR")
    const lower = one.receiptId.toLowerCase()
    assert.deepStrictEqual(yield* read(headers, { receipt_id: lower }), ["ReceiptIssued"])
    assert.strictEqual((yield* get(`/v1/qualified-confirmations/${lower}`, { key: one.key })).status, 200)
  })

  it.effect("shows the reference of a validation in its personal document, not in its event", function* () {
    const service = yield* RunningService.RunningService
    const { accountId, key } = yield* businessCaller
    const tooLong = "x".repeat(101)
    for (const reference of [tooLong, "INV\n4711", "INV\u00004711"]) {
      const refused = assertProblem(yield* service.validate("ATU12345678", { key, query: { reference } }), "VALIDATION_ERROR")
      assert.strictEqual(refused.details?.[0]?.field, "reference")
    }
    const unknown = vatIdEnding("DE", "990004")
    const unavailable = vatIdEnding("DE", "992003")
    const validate = (vatId: string, query: Readonly<Record<string, string>>) => service.validate(vatId, { key, query })
    assert.containSubset((yield* validate("ATU12345671", { reference: "INV-live" })).body, { source: "vies" })
    assert.containSubset((yield* validate("ATU12345671", { reference: "INV-cached" })).body, { source: "cache" })
    assert.containSubset((yield* validate("ATU12345671", { reference: "" })).body, { source: "cache" })
    const receiptId = yield* receiptIdOf(yield* confirm(service, "DE123456789", key, { ...muster, reference: "<INV> & sons" }))
    assertProblem(
      yield* confirm(service, unknown, key, { ...muster, reference: "INV-refused" }),
      "QUALIFIED_CONFIRMATION_REFUSED"
    )
    assertProblem(yield* confirm(service, unavailable, key, { ...muster, reference: "INV-failed" }), "SOURCE_UNAVAILABLE")

    const { headers } = yield* newAuditor()
    const query = { account_id: accountId }
    const found = yield* service.get("/v1/audit/events", { headers, query })
    const { data } = yield* Schema.decodeUnknownEffect(Referenced)(found.body)
    const references = data.flatMap(({ data, personal }) => {
      assert.notMatch(JSON.stringify(data), /INV/u)
      return personal?.reference === undefined ? [] : [personal.reference]
    })
    assert.deepStrictEqual(references, ["INV-live", "INV-cached", "<INV> & sons", "INV-refused", "INV-failed"])
    assert.isUndefined(
      data.find(({ data: { served }, personal }) => served === "cache" && personal?.reference === undefined)?.personal
    )
    const table = yield* service.get("/v1/audit/events", { headers: { ...headers, accept: "text/csv" }, query })
    for (const reference of references) assert.include(table.text, `"${reference}"`)
    const views = yield* texts(`SELECT reference AS text FROM audit.verifications WHERE reference LIKE 'INV-%'
        UNION ALL SELECT reference FROM audit.receipts WHERE reference LIKE '<INV>%'`)
    assert.deepStrictEqual(views.toSorted(), ["<INV> & sons", "INV-cached", "INV-failed", "INV-live"])

    const receipt = `${receiptsPath}/${receiptId}`
    assert.containSubset((yield* service.get(receipt, { key })).body, { reference: "<INV> & sons" })
    assert.include((yield* service.get(receipt, { key, headers: { accept: "text/html" } })).text, "&lt;INV&gt; &amp; sons")
  })

  it.effect("returns CSV for spreadsheets on request", function* () {
    const { get } = yield* RunningService.RunningService
    const { accountId, key, keyId, receiptId } = yield* businessCaller
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
    const validations = yield* get("/v1/audit/events", {
      headers: { ...headers, accept: "text/csv" },
      query: { key: keyId, type: "VatIdVerified" }
    })
    assert.include(validations.text, `"${accountId}","${keyId}","${prefixOf(key)}"`)
  })
})
