import { DateTime, Effect, Schedule, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { untilQuietEnds } from "#domain/pending/BzstPacing.ts"
import { newPaidKey, receiptsPath } from "#test/support/PaidKey.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { Sandbox } from "#test/support/Sandbox.ts"
import type { Reply } from "#test/support/ServiceClient.ts"
import { assert, layer } from "#test/support/Test.ts"

const path = "/v1/batches"

const decodeBatch = Schema.decodeUnknownEffect(Schema.Struct({ batch_id: Schema.String }))
const idOf = ({ body }: Reply) => Effect.map(decodeBatch(body), ({ batch_id }) => batch_id)

const decodeReceipts = Schema.decodeUnknownEffect(
  Schema.Struct({ data: Schema.Array(Schema.Struct({ receipt_id: Schema.String, vat_id: Schema.String })) })
)

const finished = Effect.fnUntraced(function* (key: string, id: string) {
  const { get } = yield* RunningService.RunningService
  return yield* Effect.repeat(get(`${path}/${id}`, { key, query: { wait: "20" } }), {
    schedule: Schedule.spaced("100 millis"),
    until: ({ text }) => text.includes('"pending":0')
  })
})

layer(RunningService.layer(), { excludeTestServices: true })("a batch whose items have more than a VAT ID", (it) => {
  it.effect(
    "returns the reference of each item, stores it with the answer, and ignores answers older than max_age",
    function* () {
      const { get, newKey, post, validate } = yield* RunningService.RunningService
      const sandbox = yield* Sandbox
      const key = yield* newKey
      const [vatId, down] = ["ATU10550081", "SE556000550082"]
      for (const stored of [vatId, down]) yield* validate(stored, { key })
      yield* sandbox.configure({ vies_unavailable_member_states: ["SE"] })
      const rows = [
        "1,ATU10550081,INV-cached,x",
        "2,ATU10550081,INV-twice,y",
        "3,SE556000550082,INV-later,z",
        "4,SE556000550083,,w"
      ]
      const file = ["custom_id,vat_id,Reference,more", ...rows].join("\n")
      const upload = (key: string, query = {}, headers = {}) =>
        post(path, file, { key, query, headers: { "content-type": "text/csv", ...headers } })
      const cached = yield* idOf(yield* upload(key))
      const live = yield* idOf(yield* upload(key, { max_age: "0" }))
      yield* Effect.repeat(get(`${path}/${live}`, { key }), {
        schedule: Schedule.spaced("50 millis"),
        until: ({ text }) => text.includes('"final":1')
      })
      yield* sandbox.configure({ vies_unavailable_member_states: [] })
      for (const [id, sources] of [
        [cached, ["cache", "cache", "cache"]],
        [live, ["vies", "vies", "vies", "vies"]]
      ] as const) {
        yield* finished(key, id)
        const { body } = yield* get(`${path}/${id}/results`, { key })
        const references = [{ reference: "INV-cached" }, { reference: "INV-twice" }, { reference: "INV-later" }, {}]
        assert.containSubset(body, { data: sources.map((source, index) => ({ ...references[index], status: "final", source })) })
        const table = yield* get(`${path}/${id}/results`, { key, headers: { accept: "text/csv" } })
        assert.match(
          table.text,
          /^custom_id,.*,receipt_id,"more"\r\n.*,"INV-cached",,"x"\r\n.*,"INV-twice",,"y"\r\n.*,"INV-later",,"z"\r\n.*,,,"w"/u
        )
      }
      assert.notInclude(yield* RunningService.everythingLogged, "INV-")
      const sql = yield* SqlClient.SqlClient
      const [{ count }] =
        yield* sql`SELECT count(*)::int AS count FROM vatproof.personal_documents d JOIN vatproof.events e USING (log_id, position)
      WHERE e.type = 'VatIdVerified' AND d.document LIKE '%INV-later%'`.pipe(
          Effect.map((found) => [found[0] ?? { count: 0 }] as const)
        )
      assert.strictEqual(count, 2)
      const other = yield* newKey
      const keyed = { "idempotency-key": "one" }
      assert.strictEqual((yield* upload(other, {}, keyed)).status, 202)
      assert.strictEqual((yield* upload(other, {}, keyed)).headers["idempotent-replayed"], "true")
      assertProblem(yield* upload(other, { max_age: "60" }, keyed), "IDEMPOTENCY_KEY_REUSED")
      assertProblem(yield* upload(other, { max_age: "x" }), "VALIDATION_ERROR")
    }
  )

  it.effect(
    "confirms 200 German companies one after another, and returns a receipt for each",
    function* () {
      const service = yield* RunningService.make()
      const sandbox = yield* Sandbox
      const key = yield* newPaidKey(service)
      yield* service.travel(untilQuietEnds(DateTime.makeUnsafe(Date.now())))
      yield* sandbox.reset
      const vatIds = Array.from({ length: 200 }, (_, index) => `DE${100_560_000 + index}`)
      const columns = "custom_id,vat_id,reference,requester_vat_id,company_name,company_street,company_zip,company_city"
      const rows = vatIds.map((vatId, index) => `${index},${vatId},INV-${index},DE811115368,Muster GmbH,,10115,Berlin`)
      const file = [columns, ...rows].join("\n")
      const id = yield* idOf(yield* service.post(path, file, { key, headers: { "content-type": "text/csv" } }))
      yield* Effect.repeat(service.get(`${path}/${id}`, { key, query: { wait: "20" } }), {
        schedule: Schedule.spaced("100 millis"),
        until: ({ text }) => text.includes('"pending":0')
      })
      assert.strictEqual((yield* sandbox.journal({ source: "bzst" })).bzst.concurrent_max, 1)
      assert.strictEqual(yield* sandbox.checks({ source: "bzst" }), 200)
      const { body } = yield* service.get(`${path}/${id}/results`, { key, query: { limit: "500" } })
      const { data } = yield* decodeReceipts(body)
      assert.strictEqual(new Set(data.map(({ receipt_id }) => receipt_id)).size, 200)
      yield* Effect.forEach(data, ({ receipt_id, vat_id }, index) =>
        Effect.gen(function* () {
          assert.strictEqual(vat_id, vatIds[index])
          const url = `${receiptsPath}/${receipt_id}`
          assert.containSubset((yield* service.get(url, { key })).body, {
            receipt_id,
            target_vat_id: vat_id,
            requester_vat_id: "DE811115368",
            reference: `INV-${index}`,
            result: { valid: true, name_match: "match", zip_match: "match", city_match: "match", street_match: "not_queried" }
          })
          if (index % 20 > 0) return
          const page = yield* service.get(url, { key, headers: { accept: "text/html" } })
          for (const text of [receipt_id, vat_id, `INV-${index}`]) assert.include(page.text, text)
          const pdf = yield* service.get(url, { key, headers: { accept: "application/pdf" } })
          assert.match(pdf.text, /^%PDF-/u)
        })
      )
      const table = yield* service.get(`${path}/${id}/results`, { key, headers: { accept: "text/csv" } })
      assert.match(table.text, /^custom_id,.*,reference,receipt_id\r\n/u)
      assert.lengthOf([...table.text.matchAll(/,"INV-\d+","VP-QC-\d{8}-\w+"\r\n/gu)], 200)
      assert.strictEqual((yield* service.get("/v1/usage", { key })).headers["x-service-usage"]?.split("/")[0], "200")
    },
    120_000
  )

  it.effect(
    "refuses company data where a single validation refuses it, and keeps such columns without a requester",
    function* () {
      const { get, newKey, post } = yield* RunningService.RunningService
      const service = yield* RunningService.RunningService
      const [paid, free] = [yield* newPaidKey(service), yield* newKey]
      const item = { custom_id: "a", vat_id: "DE100561001", requester_vat_id: "DE811115368", company_name: "Muster GmbH" }
      const submit = (key: string, more: object) => post(path, { items: [{ ...item, ...more }] }, { key })
      assertProblem(yield* submit(free, {}), "PAYMENT_REQUIRED")
      const refused = assertProblem(yield* submit(paid, { vat_id: "ATU10561002" }), "QUALIFIED_CONFIRMATION_UNSUPPORTED")
      assert.match(refused.message, /^Item 1: /u)
      assertProblem(yield* submit(paid, { requester_vat_id: "" }), "INVALID_REQUESTER_VAT_ID")
      const file = "custom_id,vat_id,company_name\na,ATU10561003,Muster"
      const id = yield* idOf(yield* post(path, file, { key: free, headers: { "content-type": "text/csv" } }))
      yield* finished(free, id)
      const table = yield* get(`${path}/${id}/results`, { key: free, headers: { accept: "text/csv" } })
      assert.match(table.text, /,receipt_id,"company_name"\r\n"a",.*,,,"Muster"\r\n/u)
    }
  )
})
