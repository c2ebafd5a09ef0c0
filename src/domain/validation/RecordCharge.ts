/** Records a charge for what was done already, a source's answer or its outage, as the caller is by then. */
import { Effect } from "effect"
import type { Caller } from "#domain/callers/Caller.ts"
import type { PaidPlanRequired } from "#domain/receipts/Confirmation.ts"
import { type Credential, Identity, refresh } from "#domain/callers/Identity.ts"
import { type Charge, Metering } from "#domain/callers/Metering.ts"
import { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** How often a charge is repeated because keys or plans, of any account, keep changing. */
const maxAttempts = 10

/**
 * Gives a function that records the charge that `chargeOf` makes for the caller. If the caller was read before a key was revoked or a plan changed,
 * it is read again and charged as it is now: the source has been asked, so the work is not repeated.
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
