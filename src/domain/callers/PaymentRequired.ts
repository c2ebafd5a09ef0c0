/** What makes a 402 (rules 26, 40): only a larger plan is the remedy. */
import { Result, Schema } from "effect"
import type { Caller, KeyCaller } from "#domain/callers/Caller.ts"
import type { QuotaExceeded } from "#domain/callers/Metering.ts"
import { PlanName } from "#domain/callers/PlanLimits.ts"

/** Returns true if the plan includes qualified confirmations. */
export const isPaid = (plan: PlanName): boolean => plan !== "free"

/** The caller's plan does not include qualified confirmations. `limit` is the plan's validations per month. */
export class PaidPlanRequired extends Schema.TaggedError<PaidPlanRequired>()("PaidPlanRequired", {
  plan: PlanName,
  limit: Schema.Int
}) {
  override get message() {
    return "Qualified confirmations are part of the paid plans"
  }
}

/** Returns the caller if it is a key whose plan includes qualified confirmations. */
export const onPaidPlan = (caller: Caller): Result.Result<KeyCaller, PaidPlanRequired> =>
  caller._tag === "Key" && isPaid(caller.plan)
    ? Result.succeed(caller)
    : Result.fail(new PaidPlanRequired({ plan: caller._tag === "Key" ? caller.plan : "free", limit: caller.limit }))

/** Returns true if a larger plan is the remedy for a used-up quota. Without a key it is an API key, and on a paid plan the next month. */
export const needsLargerPlan = ({ plan }: QuotaExceeded): boolean => plan !== "anonymous" && !isPaid(plan)
