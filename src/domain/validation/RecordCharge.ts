/** Records the result of a finished call of a source, and charges the caller by its current key and plan. */
import { Effect } from "effect"
import type { Caller } from "#domain/callers/Caller.ts"
import type { PaidPlanRequired } from "#domain/receipts/ConfirmationRules.ts"
import { type Credential, Identity, refresh } from "#domain/callers/Identity.ts"
import { type Charge, Metering } from "#domain/callers/Metering.ts"
import { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** Maximum number of attempts. An attempt fails if keys or plans of any account have changed. */
const maxAttempts = 10

/**
 * Returns a function that records the charge that `chargeOf` returns for the caller. If keys or plans have changed, it reads the caller
 * again and repeats only the charge, because the source was called already. Fails with PreconditionFailed if the cached answer of a
 * charge with `repeats` is outdated.
 */
export const make = Effect.gen(function* () {
  const identity = yield* Identity
  const metering = yield* Metering

  return Effect.fnUntraced(function* (
    credential: Credential,
    identified: Caller,
    chargeOf: (caller: Caller) => Effect.Effect<Charge, PaidPlanRequired>
  ) {
    let caller = identified
    for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
      const recorded = yield* Effect.result(metering.record(yield* chargeOf(caller)))
      if (recorded._tag === "Success") return recorded.success
      const { failure } = recorded
      if (failure._tag !== "PreconditionFailed" || failure.outdated === "answer") return yield* failure
      caller = yield* refresh(identity, credential)
    }
    return yield* new StoreUnavailable({ cause: "Keys or plans changed at every attempt to record a charge" })
  })
})
