import { Effect, Layer, Redacted } from "effect"
import { PaidPlanRequired } from "#domain/callers/PaymentRequired.ts"
import { Identity, InvalidApiKey } from "#domain/callers/Identity.ts"
import { type Charge, Metering, PreconditionFailed } from "#domain/callers/Metering.ts"
import * as RecordCharge from "#domain/validation/RecordCharge.ts"
import { callerAt } from "#test/support/CallerAt.ts"
import { unanswered } from "#test/support/SourceAnswer.ts"
import { assert, it } from "#test/support/Test.ts"

const standing = { usage: { used: 1, limit: 10 }, window: null }
const credential = { _tag: "Key", key: Redacted.make("key") } as const

/**
 * Makes a RecordCharge whose store rejects callers with an identity epoch below `epoch`. Each refresh returns a caller with the next
 * epoch. `refused` collects the rejected charges.
 */
const recordFrom = Effect.fnUntraced(function* (epoch: number, refresh: Effect.Effect<void, InvalidApiKey> = Effect.void) {
  const refused: Array<Charge> = []
  let current = 0
  const identity = Layer.mock(Identity, {
    refresh: () => Effect.map(refresh, () => callerAt((current += 1))),
    byAddress: () => assert.fail("the caller has a key")
  })
  const metering = Layer.mock(Metering, {
    record: (charge) => {
      if (charge.caller._tag === "Key" && charge.caller.epoch >= epoch) return Effect.succeed({ position: 7, standing })
      refused.push(charge)
      return Effect.fail(new PreconditionFailed({ outdated: "identity" }))
    }
  })
  const record = yield* Effect.provide(RecordCharge.make, Layer.merge(identity, metering))
  return { record, refused }
})

const chargeFor = (caller: Charge["caller"]) =>
  Effect.succeed<Charge>({ caller, event: unanswered, units: 1, admitted: standing })

it.effect("RecordCharge reads a caller again while the cached caller is outdated, and then records the charge", function* () {
  const { record, refused } = yield* recordFrom(2)
  assert.deepStrictEqual(yield* record(credential, callerAt(0), chargeFor), { position: 7, standing })
  assert.deepStrictEqual(
    refused.map(({ caller }) => caller),
    [callerAt(0), callerAt(1)]
  )
})

it.effect("RecordCharge fails after ten attempts if the caller is outdated at every attempt", function* () {
  const { record, refused } = yield* recordFrom(Infinity)
  assert.strictEqual((yield* Effect.flip(record(credential, callerAt(0), chargeFor)))._tag, "StoreUnavailable")
  assert.lengthOf(refused, 10)
})

it.effect("RecordCharge records nothing for a revoked key", function* () {
  const { record, refused } = yield* recordFrom(1, Effect.fail(new InvalidApiKey({})))
  assert.strictEqual((yield* Effect.flip(record(credential, callerAt(0), chargeFor)))._tag, "InvalidApiKey")
  assert.lengthOf(refused, 1)
})

it.effect("RecordCharge fails if a caller read again no longer has the paid plan that the call requires", function* () {
  const { record, refused } = yield* recordFrom(1)
  const onlyAtFirst = (caller: Charge["caller"]) =>
    caller._tag === "Key" && caller.epoch === 0
      ? chargeFor(caller)
      : Effect.fail(new PaidPlanRequired({ plan: "free", limit: 100 }))
  assert.strictEqual((yield* Effect.flip(record(credential, callerAt(0), onlyAtFirst)))._tag, "PaidPlanRequired")
  assert.lengthOf(refused, 1)
})
