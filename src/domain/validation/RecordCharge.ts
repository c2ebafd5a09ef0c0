/** Records a charge for work that is done, such as a source's answer or outage, on the newest state of the caller. */
import { Effect } from "effect"
import type { Caller } from "#domain/callers/Caller.ts"
import type { PaidPlanRequired } from "#domain/receipts/ConfirmationRules.ts"
import { type Credential, Identity, refresh } from "#domain/callers/Identity.ts"
import { type Charge, Metering } from "#domain/callers/Metering.ts"
import { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** How often a charge is repeated while keys or plans of any account keep changing. */
const maxAttempts = 10

/**
 * Returns a function that records the charge that `chargeOf` creates for the caller. If a key was revoked or a plan changed,
 * reads the caller again and charges it in its new state: the source was asked already, so the work is not repeated.
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
      if (recorded.failure._tag !== "PreconditionFailed") return yield* recorded.failure
      caller = yield* refresh(identity, credential)
    }
    return yield* new StoreUnavailable({ cause: "Keys or plans changed at each attempt to record a charge" })
  })
})
