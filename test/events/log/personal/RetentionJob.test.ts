import { DateTime, Effect, Exit, Layer } from "effect"
import { Integrity } from "#domain/log/Integrity.ts"
import { AccountClosed, accountStream, AccountRegistered } from "#domain/accounts/AccountEvents.ts"
import { ApiKeyClaimed, ApiKeyIssued, ApiKeyReleased } from "#domain/accounts/ApiKeyEvents.ts"
import { PersonalDataErased, PersonalDataHeld, personalDataStream } from "#domain/log/PersonalData.ts"
import { Retention, retainUntil } from "#domain/log/Retention.ts"
import type { DomainEvent } from "#domain/log/DomainEvent.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import { makeEraseExpired } from "#events/log/personal/RetentionJob.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import { texts } from "#test/support/Batches.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as SignedLog from "#test/support/SignedLog.ts"
import { answered, answerJson } from "#test/support/SourceAnswer.ts"
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
const [open, closed] = ["019371c0-5f00-7000-8000-0000000000ac", "019371c0-5f00-7000-8000-0000000000ad"]

const append = Effect.fnUntraced(function* (stream: string, event: DomainEvent) {
  const events = yield* EventStore
  return (yield* events.append({ stream, expectedVersion: null, events: [event], charge: null })).position
})

/** Returns the data of the API key with this number. */
const keyOf = (who: number) => ({
  key_id: `019371c0-5f00-7000-8000-0000000000b${who}`,
  prefix: `svc_live_00${who}`,
  key_sha256: String(who).repeat(64)
})
const [openKey, closedKey, claimedKey] = [keyOf(0), keyOf(1), keyOf(2)]

const receiptOf = (accountId: string, { key_id } = openKey): DomainEvent => ({
  type: "ReceiptIssued",
  schemaVersion: 1,
  data: { account_id: accountId, answer: answerJson, key_id, receipt: { target_vat_id: "DE123456789" } },
  personal: { retention: "receipts", document: { input: { company_name: "Muster" } } }
})

const kept = texts("SELECT position::text AS text FROM vatproof.personal_documents WHERE document IS NOT NULL ORDER BY position")

layer(MigratedDatabase.layer.pipe(Layer.provideMerge(Layer.merge(NodeCrypto.layer, Integrity.layer)), Layer.provide(over)), {
  excludeTestServices: true
})("the erasure of personal documents", (it) => {
  it.effect(
    "erases expired documents except those on legal hold; a receipt's document expires only after the account is closed",
    function* () {
      const eraseExpired = yield* makeEraseExpired
      const registered = { plan: "free", with_email: false, agent_id_hash: null } as const
      yield* append(accountStream(open), AccountRegistered.make({ account_id: open, ...registered }))
      yield* append(accountStream(closed), AccountRegistered.make({ account_id: closed, ...registered }))
      yield* append(accountStream(open), ApiKeyIssued.make({ account_id: open, ...openKey }))
      for (const key of [closedKey, claimedKey]) {
        yield* append(accountStream(closed), ApiKeyIssued.make({ account_id: closed, ...key }))
      }
      const { key_sha256: _, ...name } = claimedKey
      yield* append(accountStream(closed), ApiKeyReleased.make({ account_id: closed, to_account_id: open, ...name }))
      const issued_at = DateTime.makeUnsafe("2026-11-21T10:00:00Z")
      const claimed = { account_id: open, from_account_id: closed, issued_at, ...claimedKey }
      yield* append(accountStream(open), ApiKeyClaimed.make(claimed))
      yield* append(accountStream(closed), AccountClosed.make({ account_id: closed }))
      const held = yield* append("key-1", answered("ATU12345678"))
      yield* append(personalDataStream, PersonalDataHeld.make({ positions: [held] }))
      const ofOpen = yield* append("receipt-1", receiptOf(open))
      yield* append("receipt-2", receiptOf(closed, closedKey))
      const ofClaimed = yield* append("receipt-3", receiptOf(closed, claimedKey))
      // Stores more documents than one page of the erasure can hold.
      yield* Effect.repeat(append("key-2", answered("ATU12345679")), { times: 249 })
      assert.strictEqual(yield* eraseExpired, 251)
      assert.deepStrictEqual(yield* kept, [held, ofOpen, ofClaimed].map(String))
      assert.strictEqual(yield* eraseExpired, 0)
      const erasures = yield* texts("SELECT count(*)::text AS text FROM vatproof.events WHERE type = 'PersonalDataErased'")
      assert.deepStrictEqual(erasures, ["3"])
    }
  )

  it.effect("erases no document if one of the documents is on legal hold, because the append of the erasure fails", function* () {
    const [one, held] = [yield* append("key-3", answered("ATU12345670")), yield* append("key-3", answered("ATU12345671"))]
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
      const due = (vatId: string): DomainEvent => {
        const event = answered(vatId)
        return { ...event, personal: { retention: "receipts", document: event.personal?.document ?? {} } }
      }
      const kept = yield* append("key-1", answered("ATU12345678"))
      const held = yield* append("key-1", due("ATU12345670"))
      const changed = yield* append("key-1", due("ATU12345671"))
      const erased = yield* append("key-1", due("ATU12345679"))
      const hold = yield* append(personalDataStream, PersonalDataHeld.make({ positions: [held] }))
      yield* SignedLog.sign(hold + 1)
      yield* tamper(
        `UPDATE vatproof.personal_documents SET retain_until = now() - interval '10 days' WHERE position = ${kept}`,
        `UPDATE vatproof.personal_documents SET is_held = false, changed_by = NULL WHERE position = ${held}`,
        `UPDATE vatproof.events SET units = 1 WHERE position = ${changed}`
      )
      const eraseExpired = yield* makeEraseExpired
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
