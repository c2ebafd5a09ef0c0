import { DateTime, Effect, Layer } from "effect"
import { AccountClosed, accountStream, AccountRegistered } from "#domain/accounts/AccountEvents.ts"
import { ApiKeyClaimed, ApiKeyIssued, ApiKeyReleased } from "#domain/accounts/ApiKeyEvents.ts"
import type { DomainEvent } from "#domain/log/DomainEvent.ts"
import { Integrity } from "#domain/log/Integrity.ts"
import { Retention } from "#domain/log/Retention.ts"
import { makeEraseExpired } from "#events/log/personal/RetentionJob.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import { mayErase } from "#events/receipts/ReceiptRetention.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import { texts } from "#test/support/Batches.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { answered, answerJson } from "#test/support/SourceAnswer.ts"
import { assert, layer } from "#test/support/Test.ts"

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
})("the retention of receipts", (it) => {
  it.effect("keeps the expired document of a receipt until the account of its API key is closed", function* () {
    const eraseExpired = yield* makeEraseExpired(mayErase)
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
    const ofOpen = yield* append("receipt-1", receiptOf(open))
    yield* append("receipt-2", receiptOf(closed, closedKey))
    const ofClaimed = yield* append("receipt-3", receiptOf(closed, claimedKey))
    yield* append("key-2", answered("ATU12345679"))
    assert.strictEqual(yield* eraseExpired, 2)
    assert.deepStrictEqual(yield* kept, [ofOpen, ofClaimed].map(String))
  })
})
