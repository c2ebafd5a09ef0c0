import { Array as Arr, Effect, Schema } from "effect"
import { Receipt, ReceiptSummary } from "#domain/receipts/Receipt.ts"
import { confirm, decodeConfirmed, muster, newPaidKey, receiptIdOf, receiptsPath as list } from "#test/support/PaidKey.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { ServiceClient } from "#test/support/ServiceClient.ts"
import { assert, layer } from "#test/support/Test.ts"

const Page = Schema.Struct({ data: Schema.Array(ReceiptSummary), next_cursor: Schema.NullOr(Schema.String) })
const decodePage = Schema.decodeUnknownEffect(Page, { onExcessProperty: "error" })
const decodeReceipt = Schema.decodeUnknownEffect(Receipt, { onExcessProperty: "error" })

/** Issues a receipt for each VAT ID, one after the other. */
const issue = (client: ServiceClient, key: string, vatIds: ReadonlyArray<string>) =>
  Effect.forEach(vatIds, (vatId) => Effect.flatMap(confirm(client, vatId, key), receiptIdOf))

const pageOf = Effect.fnUntraced(function* (client: ServiceClient, key: string, query: Readonly<Record<string, string>> = {}) {
  const reply = yield* client.ask(list, { key, query })
  assert.strictEqual(reply.status, 200, reply.text)
  const { data, next_cursor } = yield* decodePage(reply.body)
  return { ids: data.map(({ receipt_id }) => receipt_id), data, next: next_cursor }
})

/** Reads all pages, and runs `between` after each. */
const allPages = Effect.fnUntraced(function* (
  client: ServiceClient,
  key: string,
  query: Readonly<Record<string, string>>,
  between: Effect.Effect<unknown, unknown> = Effect.void
) {
  const pages: Array<ReadonlyArray<string>> = []
  let next: string | null = ""
  while (next !== null) {
    const page: Effect.Success<ReturnType<typeof pageOf>> = yield* pageOf(
      client,
      key,
      next === "" ? query : { ...query, cursor: next }
    )
    pages.push(page.ids)
    next = page.next
    yield* between
  }
  return pages
})

const vatIds = (count: number, from = 100_440_200) => Array.from({ length: count }, (_, index) => `DE${from + index}`)

const service = RunningService.layerShared()
const started = Effect.gen(function* () {
  const client = yield* RunningService.RunningService
  return { client, key: yield* newPaidKey(client) }
})

layer(service, { excludeTestServices: true })("GET /v1/qualified-confirmations/{receipt_id}", (it) => {
  it.effect("returns the receipt with exactly the documented fields", function* () {
    const { client, key } = yield* started
    const answered = yield* confirm(client, "DE100440201", key, { ...muster, company_street: "" })
    const { qualified_confirmation: shown } = yield* decodeConfirmed(answered.body)
    const reply = yield* client.ask(`${list}/${shown.receipt_id}`, { key })
    assert.strictEqual(reply.status, 200)
    yield* decodeReceipt(reply.body)
    assert.deepStrictEqual(
      Object.keys(Object(reply.body)),
      Object.keys(Receipt.fields).filter((name) => name !== "sandbox")
    )
    assert.containSubset(reply.body, {
      receipt_id: shown.receipt_id,
      target_vat_id: "DE100440201",
      requester_vat_id: "DE811115368",
      input: { ...muster, company_street: "" },
      result: {
        valid: true,
        name_match: "match",
        street_match: "not_queried",
        zip_match: "match",
        city_match: "match",
        official_name: "",
        official_address: ""
      },
      issued_at: shown.issued_at,
      source: "vatproof-issued"
    })
    assert.match(reply.text, /"bzst_request_id":"[0-9a-f]{16}"/u)
    assert.strictEqual(reply.headers["x-service-usage"], answered.headers["x-service-usage"])
  })

  it.effect("returns a receipt at once on every replica", function* () {
    const { client, key } = yield* started
    const replicas = [yield* RunningService.make(), yield* RunningService.make()]
    for (const vatId of vatIds(3)) {
      const id = yield* Effect.flatMap(confirm(client, vatId, key), receiptIdOf)
      const replies = yield* Effect.all(
        replicas.map((replica) => replica.ask(`${list}/${id}`, { key })),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(
        replies.map(({ status }) => status),
        [200, 200]
      )
      for (const replica of replicas) assert.strictEqual((yield* pageOf(replica, key)).ids[0], id)
    }
  })

  it.effect("returns 404 to callers with another key", function* () {
    const { client, key } = yield* started
    const [id = ""] = yield* issue(client, key, ["DE100440202"])
    const other = yield* newPaidKey(client)
    const refused = assertProblem(yield* client.ask(`${list}/${id}`, { key: other }), "NOT_FOUND")
    const unknown = assertProblem(yield* client.ask(`${list}/VP-QC-20260101-AAAAAAAAAA`, { key: other }), "NOT_FOUND")
    assert.strictEqual(refused.message.replace(id, ""), unknown.message.replace("VP-QC-20260101-AAAAAAAAAA", ""))
    assert.deepStrictEqual((yield* pageOf(client, other)).ids, [])
    assert.deepStrictEqual((yield* pageOf(client, other, { target_vat_id: "DE100440202" })).ids, [])
    for (const path of [list, `${list}/${id}`]) {
      assertProblem(yield* client.ask(path), "UNAUTHORIZED")
      assertProblem(yield* client.ask(path, { key: "svc_live_wrong" }), "UNAUTHORIZED")
    }
  })

  it.effect("returns supplied company data unchanged, whatever its characters", function* () {
    const { client, key } = yield* started
    const company_name = "\uFFFF \u202E <b> ' \\ 日本 😀"
    const [id = ""] = yield* Effect.map(
      Effect.flatMap(confirm(client, "DE100440204", key, { ...muster, company_name }), receiptIdOf),
      Arr.of
    )
    assert.containSubset((yield* client.ask(`${list}/${id}`, { key })).body, { input: { company_name } })
    for (const accept of ["text/html", "application/pdf"]) {
      assert.strictEqual((yield* client.ask(`${list}/${id}`, { key, headers: { accept } })).status, 200)
    }
  })

  it.effect("returns 404 for any malformed receipt id", function* () {
    const { client, key } = yield* started
    for (const id of [
      "x",
      "VP-QC-20260101-aaaaaaaaaa",
      "%00",
      "%F0%9F%98%80",
      "..%2F..%2Fetc",
      "'; DROP TABLE--",
      "x".repeat(3_000)
    ]) {
      assertProblem(yield* client.ask(`${list}/${id}`, { key }), "NOT_FOUND")
    }
  })
})

layer(service, { excludeTestServices: true })("GET /v1/qualified-confirmations", (it) => {
  it.effect("lists the newest receipts first, 20 per page by default", function* () {
    const { client, key } = yield* started
    assert.deepStrictEqual(yield* pageOf(client, key), { ids: [], data: [], next: null })
    const issued = (yield* issue(client, key, vatIds(23))).toReversed()
    const pages = yield* allPages(client, key, {})
    assert.deepStrictEqual(
      pages.map(({ length }) => length),
      [20, 3]
    )
    assert.deepStrictEqual(pages.flat(), issued)
    for (const limit of [7, 23]) {
      const some = yield* allPages(client, key, { limit: String(limit) })
      assert.deepStrictEqual(some.flat(), issued)
      assert.strictEqual(some.length, Math.ceil(23 / limit))
    }
    const { data } = yield* pageOf(client, key, { limit: "1" })
    assert.containSubset(data, [
      { receipt_id: issued[0], target_vat_id: "DE100440222", name_match: "match", street_match: "match" }
    ])
  })

  it.effect("filters receipts by a VAT ID in any spelling", function* () {
    const { client, key } = yield* started
    const [first = "", , third = ""] = yield* issue(client, key, ["DE100440230", "DE100440231", "100440230"])
    for (const target_vat_id of ["DE100440230", "de 100-440.230", "100440230"]) {
      const page = yield* pageOf(client, key, { target_vat_id })
      assert.deepStrictEqual([page.ids, page.next], [[third, first], null])
    }
    assert.deepStrictEqual((yield* allPages(client, key, { target_vat_id: "DE100440230", limit: "1" })).flat(), [third, first])
    assert.deepStrictEqual((yield* pageOf(client, key, { target_vat_id: "DE999999999" })).ids, [])
    assertProblem(yield* client.ask(list, { key, query: { target_vat_id: "XX1" } }), "INVALID_VAT_ID")
  })

  it.effect("rejects a malformed page size", function* () {
    const { client, key } = yield* started
    for (const limit of ["0", "-1", "101", "1.5", "1.0", "ten", "1e1", "1e999", "+1", "01", "0x1", " 1", ""]) {
      const { details } = assertProblem(yield* client.ask(list, { key, query: { limit } }), "VALIDATION_ERROR")
      assert.strictEqual(details?.[0]?.field, "limit")
    }
  })

  it.effect("rejects a cursor that is changed, or is sent with another API key or filter", function* () {
    const { client, key } = yield* started
    const other = yield* newPaidKey(client)
    yield* issue(client, key, ["DE100440240", "DE100440240", "DE100440241"])
    yield* issue(client, other, ["DE100440240", "DE100440240"])
    const { next } = yield* pageOf(client, key, { limit: "1" })
    const cursor = next ?? ""
    const filtered = (yield* pageOf(client, key, { limit: "1", target_vat_id: "DE100440240" })).next ?? ""
    const [position = "", signature = ""] = cursor.split(".")
    const flipped = signature.replace(/^./u, (digit) => (digit === "0" ? "1" : "0"))
    for (const [as, query] of [
      [key, { cursor: `${position}0.${signature}` }],
      [key, { cursor: `${position}.${flipped}` }],
      [key, { cursor: `${position}.${signature.toUpperCase()}x` }],
      [key, { cursor: position }],
      [key, { cursor: "" }],
      [key, { cursor: "x".repeat(2_000) }],
      [key, { cursor: "\u0000" }],
      [key, { cursor, target_vat_id: "DE100440240" }],
      [key, { cursor: filtered }],
      [key, { cursor: filtered, target_vat_id: "DE100440241" }],
      [other, { cursor }],
      [other, { cursor: filtered, target_vat_id: "DE100440240" }]
    ] as const) {
      assert.include(assertProblem(yield* client.ask(list, { key: as, query }), "VALIDATION_ERROR").message, "cursor")
    }
    // A cursor is also valid with another limit and on another replica.
    const replica = yield* RunningService.make()
    assert.strictEqual((yield* pageOf(replica, key, { cursor, limit: "50" })).ids.length, 2)
  })

  it.effect("lists each earlier receipt exactly once, even if new receipts are issued between two pages", function* () {
    const { client, key } = yield* started
    const before = (yield* issue(client, key, vatIds(9, 100_440_300))).toReversed()
    const more = Effect.all(
      vatIds(2, 100_440_400).map((vatId) => confirm(client, vatId, key)),
      { concurrency: "unbounded" }
    )
    const pages = yield* allPages(client, key, { limit: "4" }, more)
    assert.deepStrictEqual(pages.flat(), before)
    const afterwards = (yield* allPages(client, key, { limit: "100" })).flat()
    assert.strictEqual(new Set(afterwards).size, 9 + 2 * pages.length)
    assert.deepStrictEqual(afterwards.slice(-9), before)
  })
})
