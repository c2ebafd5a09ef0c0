/** Compares the results of many combinations of filters, read page by page, with a scan of all events. */
import { DateTime, Effect, Layer, type Schema } from "effect"
import { logCatalogue } from "#app/layers/LogCatalogue.ts"
import { Integrity } from "#domain/log/Integrity.ts"
import type { AuditFilter } from "#domain/audit/AuditTrail.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as EventIndex from "#events/audit/EventIndex.ts"
import * as EventSearch from "#events/audit/EventSearch.ts"
import { Projections } from "#events/log/projections/Projections.ts"
import type { StoredEvent } from "#events/log/store/StoredEvent.ts"
import { answerJson } from "#test/support/SourceAnswer.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { assert, layer } from "#test/support/Test.ts"

const id = (end: string) => `019371c0-5f00-7000-8000-0000000000${end}`
const [one, two] = [id("a1"), id("a2")]
const keys = [
  { key: id("b1"), account: one },
  { key: id("b2"), account: one },
  { key: id("b3"), account: two }
]

const [firstKey = "", lastKey = ""] = [keys[0]?.key, keys[2]?.key]

/** An event, and the filters that must find it. */
interface Fact {
  readonly stream: string
  readonly type: string
  readonly data: Schema.Json
  readonly account: string | null
  readonly key: string | null
  readonly vatId: string | null
  readonly receipt: string | null
}

const none = { account: null, key: null, vatId: null, receipt: null }

/** VatIdVerified events as the service writes them, and in other forms, whose VAT ID the index finds only by parsing JSON. */
const verified = (vatId: string): ReadonlyArray<Schema.Json> => [
  { answer: null, served: "cache", valid: true, vat_id: vatId },
  { answer: { ...answerJson, vat_id: "DE000000000", note: `,"vat_id":"DE000000000"}` }, valid: true, vat_id: vatId },
  { vat_id: vatId },
  { valid: true, vat_id: vatId, zone: `,"vat_id":"DE000000000"}` }
]

const facts = (round: number): ReadonlyArray<Fact> => {
  const receipt = `VP-QC-${round}`
  const vatId = `DE00000000${round % 3}`
  return [
    { ...none, stream: `account-${one}`, type: "AccountRegistered", data: { account_id: one, plan: "free" }, account: one },
    ...keys.flatMap(({ account, key }) =>
      verified(vatId).map((data) => ({ ...none, stream: `key-${key}`, type: "VatIdVerified", data, account, key, vatId }))
    ),
    {
      ...none,
      stream: `key-${firstKey}`,
      type: "VatIdVerificationFailed",
      data: { account_id: one, vat_id: vatId },
      account: one,
      key: firstKey,
      vatId
    },
    { ...none, stream: "anonymous-0f", type: "VatIdVerified", data: { valid: false, vat_id: vatId }, vatId },
    { ...none, stream: "key-of-stranger", type: "VatIdVerified", data: { valid: false, vat_id: 'A"\\' }, vatId: 'A"\\' },
    {
      stream: `receipt-${receipt}`,
      type: "ReceiptIssued",
      data: { account_id: two, answer: answerJson, key_id: lastKey, receipt: { target_vat_id: vatId } },
      account: two,
      key: lastKey,
      vatId,
      receipt
    },
    { ...none, stream: "source-vies", type: "SourceRecovered", data: {} }
  ]
}

/** Appends the facts in order, and returns them with their positions. */
const store = Effect.gen(function* () {
  for (const { account, key } of keys) {
    yield* MigratedDatabase.execute(
      `INSERT INTO vatproof.api_keys (key_id, account_id, key_sha256, prefix, issued_at)
       VALUES ('${key}', '${account}', sha256('${key}'), '${key.slice(-2)}', now())`
    )
  }
  const events = yield* EventStore
  const stored: Array<Fact & { readonly position: number }> = []
  for (const fact of [0, 1, 2, 3].flatMap(facts)) {
    const { data, stream, type } = fact
    const event = { type, schemaVersion: 1, data }
    const { position } = yield* events.append({ stream, expectedVersion: null, events: [event], charge: null })
    stored.push({ ...fact, position })
  }
  yield* (yield* Projections).upToDate(EventIndex.eventIndex)
  return stored
})

const anything: AuditFilter = { from: null, to: null, type: null, accountId: null, keyId: null, vatId: null, receiptId: null }

const byKeys = [firstKey, lastKey, id("ff")].flatMap((keyId) =>
  [null, one].flatMap((accountId) =>
    [null, "DE000000001"].flatMap((vatId) =>
      [null, "VatIdVerified", "ReceiptIssued"].map((type): AuditFilter => ({ ...anything, accountId, keyId, vatId, type }))
    )
  )
)

const byAccounts = [null, one, two, id("ff")].flatMap((accountId) =>
  [null, "DE000000001", 'A"\\', "DE000000000"].flatMap((vatId) =>
    [null, "VP-QC-2"].flatMap((receiptId) =>
      [null, "VatIdVerified", "VatIdVerificationFailed", "ReceiptIssued", "Nothing"].map((type): AuditFilter => ({
        ...anything,
        accountId,
        vatId,
        receiptId,
        type
      }))
    )
  )
)

const filters = [...byAccounts, ...byKeys]

const passes =
  ({ accountId, keyId, receiptId, type, vatId }: AuditFilter) =>
  (fact: Fact) =>
    (accountId === null || fact.account === accountId) &&
    (keyId === null || fact.key === keyId) &&
    (vatId === null || fact.vatId === vatId) &&
    (receiptId === null || fact.receipt === receiptId) &&
    (type === null || fact.type === type)

/** Reads all pages of a search and returns the events. */
const readAll = Effect.fnUntraced(function* (search: EventSearch.EventSearch, filter: AuditFilter, limit: number) {
  const found: Array<StoredEvent> = []
  let page: ReadonlyArray<StoredEvent> = []
  do {
    page = yield* search.find(filter, (found.at(-1)?.position ?? -1) + 1, limit)
    found.push(...page)
  } while (page.length === limit)
  return found
})

const testLayer = Layer.fresh(Projections.layer([EventIndex.definition])).pipe(
  Layer.provideMerge(Layer.mergeAll(MigratedDatabase.layer, Integrity.layer, logCatalogue))
)

layer(testLayer, { excludeTestServices: true })("EventSearch", (it) => {
  it.effect("finds exactly the matching events for many combinations of filters, page by page and in time ranges", function* () {
    const stored = yield* store
    const search = yield* EventSearch.make
    const recorded = yield* (yield* EventStore).read(0, stored.length)
    const from = DateTime.makeUnsafe(recorded[9]?.recorded_at ?? "")
    const to = DateTime.makeUnsafe(recorded[50]?.recorded_at ?? "")
    // Filter times are in milliseconds, log times in microseconds.
    const isIn = (position: number) => {
      const at = DateTime.makeUnsafe(recorded[position]?.recorded_at ?? "").epochMilliseconds
      return at >= from.epochMilliseconds && at < to.epochMilliseconds
    }
    for (const filter of filters) {
      const expected = stored.filter(passes(filter)).map(({ position }) => position)
      const positionsOf = (found: ReadonlyArray<StoredEvent>) => found.map(({ position }) => position)
      assert.deepStrictEqual(positionsOf(yield* readAll(search, filter, 5)), expected, JSON.stringify(filter))
      const inTime = positionsOf(yield* readAll(search, { ...filter, from, to }, 50))
      assert.deepStrictEqual(inTime, expected.filter(isIn), JSON.stringify(filter))
    }
  })
})

layer(testLayer, { excludeTestServices: true })("EventSearch over the boundary of two segments of its index", (it) => {
  it.effect("finds exactly the matching events on both sides of a segment boundary", function* () {
    const before = 2 ** 18 - 20
    yield* MigratedDatabase.execute(`UPDATE vatproof.logs SET next_position = ${before}`)
    yield* MigratedDatabase.execute(`UPDATE vatproof.projections SET position = ${before}`)
    const stored = yield* store
    // Collects statistics for the query planner. Without them, all indexes of this small table have the same cost.
    yield* MigratedDatabase.execute("ANALYZE vatproof.events")
    const search = yield* EventSearch.make
    for (const filter of filters) {
      const expected = stored.filter(passes(filter)).map(({ position }) => position)
      const found = yield* readAll(search, filter, 3)
      assert.deepStrictEqual(
        found.map(({ position }) => position),
        expected,
        JSON.stringify(filter)
      )
    }
  })
})
