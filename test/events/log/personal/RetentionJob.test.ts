import { DateTime, Effect, Exit, Layer } from "effect"
import { Integrity } from "#domain/log/Integrity.ts"
import { PersonalDataErased, PersonalDataHeld, personalDataStream } from "#domain/log/PersonalData.ts"
import { Retention, retainUntil } from "#domain/log/Retention.ts"
import type { DomainEvent } from "#domain/log/DomainEvent.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import { makeEraseExpired } from "#events/log/personal/RetentionJob.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import { texts } from "#test/support/Batches.ts"
import { sent } from "#test/support/log/Parcels.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as SignedLog from "#test/support/SignedLog.ts"
import { tamper } from "#test/support/Tampering.ts"
import { assert, describe, it, layer } from "#test/support/Test.ts"

describe("retainUntil", () => {
  it("ends a retention period in years at the end of a calendar year in German time, and a period in days that many days later", () => {
    const until = (period: Parameters<typeof retainUntil>[0], at: string) =>
      DateTime.formatIso(retainUntil(period, DateTime.makeUnsafe(at)))
    assert.strictEqual(until({ years: 10 }, "2026-01-01T00:00:00Z"), "2037-01-01T00:00:00.000Z")
    assert.strictEqual(until({ years: 10 }, "2026-12-31T22:59:59Z"), "2037-01-01T00:00:00.000Z")
    // Midnight of New Year in Germany.
    assert.strictEqual(until({ years: 10 }, "2026-12-31T23:00:00Z"), "2038-01-01T00:00:00.000Z")
    assert.strictEqual(until({ days: 90 }, "2026-11-21T10:00:00Z"), "2027-02-19T10:00:00.000Z")
  })
})

const over = Layer.succeed(Retention, { receipts: { days: -1 }, answers: { days: -1 } })

const append = Effect.fnUntraced(function* (stream: string, event: DomainEvent) {
  const events = yield* EventStore
  return (yield* events.append({ stream, expectedVersion: null, events: [event], charge: null })).position
})

const kept = texts("SELECT position::text AS text FROM vatproof.personal_documents WHERE document IS NOT NULL ORDER BY position")

layer(MigratedDatabase.layer.pipe(Layer.provideMerge(Layer.merge(NodeCrypto.layer, Integrity.layer)), Layer.provide(over)), {
  excludeTestServices: true
})("the erasure of personal documents", (it) => {
  it.effect("erases expired documents except those on legal hold and those that the product keeps", function* () {
    const eraseExpired = yield* makeEraseExpired("e.stream_id <> 'lost'")
    const held = yield* append("parcels", sent("1"))
    yield* append(personalDataStream, PersonalDataHeld.make({ positions: [held] }))
    const lost = yield* append("lost", sent("2"))
    // Stores more documents than one page of the erasure can hold.
    yield* Effect.repeat(append("parcels", sent("3")), { times: 249 })
    assert.strictEqual(yield* eraseExpired, 250)
    assert.deepStrictEqual(yield* kept, [held, lost].map(String))
    assert.strictEqual(yield* eraseExpired, 0)
    const erasures = yield* texts("SELECT count(*)::text AS text FROM vatproof.events WHERE type = 'PersonalDataErased'")
    assert.deepStrictEqual(erasures, ["3"])
  })

  it.effect("erases no document if one of the documents is on legal hold, because the append of the erasure fails", function* () {
    const [one, held] = [yield* append("parcels", sent("70")), yield* append("parcels", sent("71"))]
    yield* append(personalDataStream, PersonalDataHeld.make({ positions: [held] }))
    const before = yield* kept
    const { appendWith } = yield* EventStore
    const erased = PersonalDataErased.make({ positions: [one, held], cause: "request" })
    const command = { stream: personalDataStream, expectedVersion: null, events: [erased] as const, charge: null }
    const refused = yield* Effect.exit(appendWith([command], () => Effect.void))
    assert.isTrue(Exit.isFailure(refused))
    assert.deepStrictEqual(yield* kept, before)
    const events = texts(`SELECT position::text AS text FROM vatproof.events WHERE data LIKE '%"positions":[${one},%'`)
    assert.deepStrictEqual(yield* events, [])
  })
})

const mixed = Layer.succeed(Retention, { receipts: { days: -1 }, answers: { days: 3_650 } })

layer(SignedLog.layer.pipe(Layer.provide(mixed)), { excludeTestServices: true })(
  "the erasure of altered personal documents",
  (it) => {
    it.effect("erases no document that the signed events keep, reports it, and continues with the others", function* () {
      const due = (parcel: string): DomainEvent => {
        const event = sent(parcel)
        return { ...event, personal: { retention: "receipts", document: event.personal?.document ?? {} } }
      }
      const kept = yield* append("parcels", sent("78"))
      const held = yield* append("parcels", due("70"))
      const changed = yield* append("parcels", due("71"))
      const erased = yield* append("parcels", due("79"))
      const hold = yield* append(personalDataStream, PersonalDataHeld.make({ positions: [held] }))
      yield* SignedLog.sign(hold + 1)
      yield* tamper(
        `UPDATE vatproof.personal_documents SET retain_until = now() - interval '10 days' WHERE position = ${kept}`,
        `UPDATE vatproof.personal_documents SET is_held = false, changed_by = NULL WHERE position = ${held}`,
        `UPDATE vatproof.events SET units = 1 WHERE position = ${changed}`
      )
      const eraseExpired = yield* makeEraseExpired("true")
      assert.strictEqual(yield* eraseExpired, 1)
      const stored = texts("SELECT position::text AS text FROM vatproof.personal_documents WHERE document IS NULL")
      assert.deepStrictEqual(yield* stored, [String(erased)])
      const { altered } = yield* (yield* Integrity).report
      const finding = (position: number) =>
        `The personal document at position ${position} is due for erasure against its signed events`
      assert.deepStrictEqual(altered, [kept, held, changed].map(finding))
      yield* tamper(`UPDATE vatproof.events SET data = replace(data, '[', '[ ') WHERE position = ${hold}`)
      assert.isTrue(Exit.isFailure(yield* Effect.exit(eraseExpired)))
    })
  }
)
