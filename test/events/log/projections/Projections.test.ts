import { Context, Effect, Layer, Result, Schedule, Schema } from "effect"
import { logCatalogue } from "#app/layers/LogCatalogue.ts"
import type { PersonalData } from "#domain/log/PersonalData.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import { tableProjections } from "#events/ProjectionCatalogue.ts"
import { Projections } from "#events/log/projections/Projections.ts"
import * as EventIndex from "#events/audit/EventIndex.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { answerJson } from "#test/support/SourceAnswer.ts"
import * as SkippingClock from "#test/support/SkippingClock.ts"
import { tamper } from "#test/support/Tampering.ts"
import { assert, describe, it, layer } from "#test/support/Test.ts"
import * as Rows from "#test/support/Rows.ts"

const accountId = "019371c0-5f00-7000-8000-0000000000ac"
const keyId = "019371c0-5f00-7000-8000-0000000000a1"
const receiptId = "VP-QC-20261121-A7K2M9P4R3"

const append = Effect.fnUntraced(function* (stream: string, type: string, data: Schema.Json, personal?: PersonalData) {
  const events = yield* EventStore
  return yield* events.append({
    stream,
    expectedVersion: null,
    events: [{ type, schemaVersion: 1, data, ...(personal === undefined ? {} : { personal }) }],
    charge: null
  })
})

const readPlaces = Effect.gen(function* () {
  return yield* Rows.all(
    {
      position: Schema.BigInt,
      type: Schema.String,
      account_id: Schema.NullOr(Schema.String),
      vat_id: Schema.NullOr(Schema.String),
      receipt_id: Schema.NullOr(Schema.String)
    },
    (sql) => sql`SELECT position, type, account_id, vat_id, receipt_id FROM vatproof.event_index ORDER BY position`
  )
})

const companyNames = MigratedDatabase.asAdministrator(
  Effect.gen(function* () {
    return (yield* Rows.all(
      { company_name: Schema.NullOr(Schema.String) },
      (sql) => sql`SELECT company_name FROM audit.receipts`
    )).map(({ company_name }) => company_name)
  })
)

/** Returns the approximate number of transactions of the database. The statistics may lack the transactions of the last second. */
const transactions = Effect.gen(function* () {
  const { count } = yield* Rows.one(
    { count: Schema.BigInt },
    (sql) => sql`SELECT xact_commit AS count FROM pg_stat_database WHERE datname = current_database()`
  )
  return Number(count)
})

const followRules = (version: number) =>
  MigratedDatabase.execute(`UPDATE vatproof.projections SET version = ${version} WHERE name = '${EventIndex.eventIndex}'`)

/** The tables that the append and this projection update. */
const followed = new Set([
  ...tableProjections.filter(({ kind }) => kind === "inline").map(({ name }) => name),
  EventIndex.eventIndex
])

const projectionsLayer = Projections.layer([EventIndex.definition]).pipe(Layer.provide(logCatalogue))
const testLayer = projectionsLayer.pipe(Layer.provideMerge(MigratedDatabase.layer))

layer(testLayer, { excludeTestServices: true })("An asynchronous projection", (it) => {
  it.effect("shows every event that was appended before the call of upToDate", function* () {
    const projections = yield* Projections
    const issued = { account_id: accountId, key_id: keyId, key_sha256: "00".repeat(32), prefix: "svc_live_abc" }
    yield* append(`account-${accountId}`, "ApiKeyIssued", issued)
    yield* append(`key-${keyId}`, "VatIdVerified", { vat_id: "DE123456789" })
    yield* append(`receipt-${receiptId}`, "ReceiptIssued", {
      account_id: accountId,
      answer: answerJson,
      key_id: keyId,
      receipt: { receipt_id: receiptId, target_vat_id: "DE999999999" }
    })
    yield* append("anonymous-0f", "VatIdVerified", { vat_id: "ATU12345678" })
    yield* append("source-vies", "SourceRecovered", {})
    yield* projections.upToDate(EventIndex.eventIndex)
    assert.deepStrictEqual(yield* readPlaces, [
      { position: 0n, type: "ApiKeyIssued", account_id: accountId, vat_id: null, receipt_id: null },
      { position: 1n, type: "VatIdVerified", account_id: null, vat_id: "DE123456789", receipt_id: null },
      { position: 2n, type: "ReceiptIssued", account_id: accountId, vat_id: "DE999999999", receipt_id: receiptId },
      { position: 3n, type: "VatIdVerified", account_id: null, vat_id: "ATU12345678", receipt_id: null },
      { position: 4n, type: "SourceRecovered", account_id: null, vat_id: null, receipt_id: null }
    ])
    const state = { version: 1, position: 5, lag: 0, stalled_ms: 0, outdated: false }
    assert.deepStrictEqual(
      (yield* projections.list).filter(({ name }) => followed.has(name)),
      tableProjections.filter(({ name }) => followed.has(name)).map(({ kind, name }) => ({ name, kind, ...state }))
    )
  })

  it.effect("is not reported as stalled after an hour without events", function* () {
    const projections = yield* Projections
    yield* followRules(2)
    yield* MigratedDatabase.execute("UPDATE vatproof.projections SET moved_at = now() - interval '1 hour'")
    yield* append("source-vies", "SourceRecovered", {})
    const state = (yield* projections.list).find(({ name }) => name === EventIndex.eventIndex)
    assert.isAtLeast(state?.lag ?? 0, 1)
    assert.isBelow(state?.stalled_ms ?? Infinity, 60_000)
    yield* followRules(1)
    yield* projections.upToDate(EventIndex.eventIndex)
  })

  it.effect("does not update a table that a newer version of the service has built, and waits before each retry", function* () {
    const projections = yield* Projections
    yield* followRules(2)
    yield* append("source-vies", "SourceRecovered", {})
    const before = yield* transactions
    // `upToDate` waits until its timeout.
    yield* Effect.flip(projections.upToDate(EventIndex.eventIndex))
    assert.isBelow((yield* transactions) - before, 1000)
    yield* followRules(1)
    yield* projections.upToDate(EventIndex.eventIndex)
  })

  it.effect("stops at a gap in the log, and reports the gap's position", function* () {
    const projections = yield* Projections
    const { position } = yield* append("source-vies", "SourceRecovered", {})
    yield* projections.upToDate(EventIndex.eventIndex)
    // Stops the projection until the gap exists.
    yield* followRules(2)
    yield* append("source-vies", "SourceRecovered", {})
    yield* tamper(`DELETE FROM vatproof.events_p0 WHERE position = ${position + 1}`)
    yield* followRules(1)
    const refused = yield* Effect.result(projections.upToDate(EventIndex.eventIndex))
    assert.match(
      String(Result.getOrThrow(Result.flip(refused)).cause),
      new RegExp(`positions ${position + 1} to [0-9]+ have only 0 events`, "u")
    )
  })
})

describe("Background projections", () => {
  it.live("continue after an event whose text Postgres cannot convert to JSON", () =>
    Effect.gen(function* () {
      const projections = yield* Projections
      const text = "a\u0000\u0000b \\u0000 \\\u0000 c"
      const receipt = { receipt_id: receiptId, target_vat_id: "DE123456789", bzst_request_id: text }
      const personal = { retention: "receipts", document: { input: { company_name: text } } } as const
      const issued = { account_id: accountId, answer: answerJson, key_id: keyId, receipt }
      yield* append(`receipt-${receiptId}`, "ReceiptIssued", issued, personal)
      yield* append("source-vies", "SourceRecovered", {})
      yield* projections.upToDate(EventIndex.eventIndex)
      assert.deepStrictEqual(
        (yield* readPlaces).map(({ vat_id }) => vat_id),
        ["DE123456789", null]
      )
      const [name] = yield* companyNames
      assert.strictEqual(name, text.replaceAll("\u0000", "\uFFFD"))
    }).pipe(Effect.provide(testLayer, { local: true }))
  )

  it.live("spread the work on the events of one busy second over most of the next second", () =>
    Effect.gen(function* () {
      const events = Array.from({ length: 2500 }, () => append("source-vies", "SourceRecovered", {}))
      yield* Effect.all(events, { concurrency: "unbounded", discard: true })
      // Simulates a projection that has not advanced for a minute.
      yield* MigratedDatabase.execute(`UPDATE vatproof.projections SET moved_at = now() - interval '1 minute'`)
      const clock = SkippingClock.make()
      const { list } = yield* Effect.map(clock.on(Layer.build(projectionsLayer)), Context.get(Projections))
      yield* list.pipe(
        Effect.repeat({
          until: (states) => states.every(({ lag, name }) => lag === 0 || !followed.has(name)),
          schedule: Schedule.spaced("20 millis")
        }),
        Effect.timeout("15 seconds")
      )
      // Work takes no time on this clock, so each pause is the whole interval between two batches of 1,000 events.
      assert.deepStrictEqual(clock.waits().slice(0, 2), [320, 320])
    }).pipe(Effect.scoped, Effect.provide(MigratedDatabase.layer))
  )
})
