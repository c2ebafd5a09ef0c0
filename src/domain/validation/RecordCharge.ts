/** Records the result of a finished call of a source, and charges the caller by its current key and plan. */
import { Effect } from "effect"
import type { Caller } from "#domain/callers/Caller.ts"
import type { PaidPlanRequired } from "#domain/callers/PaymentRequired.ts"
import { type Credential, Identity, type InvalidApiKey, refresh } from "#domain/callers/Identity.ts"
import { type Charge, Metering, type PreconditionFailed } from "#domain/callers/Metering.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import { whileOutdated } from "#domain/callers/ReadAgain.ts"

/**
 * Returns a function that records the charge that `chargeOf` returns for the caller. If keys or plans have changed, it reads the caller
 * again and repeats only the charge, because the source was called already. Fails with PreconditionFailed if the cached answer of a
 * charge with `repeats` is outdated.
 */
export const make = Effect.gen(function* () {
  const identity = yield* Identity
  const metering = yield* Metering

  return (credential: Credential, identified: Caller, chargeOf: (caller: Caller) => Effect.Effect<Charge, PaidPlanRequired>) =>
    whileOutdated(
      identified,
      (caller) => Effect.flatMap(chargeOf(caller), metering.record),
      (failure): Effect.Effect<Caller, InvalidApiKey | PreconditionFailed | StoreUnavailable> =>
        failure.outdated === "answer" ? Effect.fail(failure) : refresh(identity, credential)
    )
})
