/** Plans and their limits per month and minute (rule 38). The operator can change the numbers (PLAN_*, ANONYMOUS_*). */
import { Context, Schema } from "effect"

export const PlanName = Schema.Literals(["free", "starter", "business", "enterprise"])
export type PlanName = typeof PlanName.Type

/** Maximum number of validations of an API key per calendar month (UTC), and per minute. */
export interface PlanLimits {
  readonly perMonth: number
  readonly perMinute: number
}

export interface AllPlans {
  readonly byName: Readonly<Record<PlanName, PlanLimits>>
  /** Limits of a client without a key, by its IP address: validations in total, and per minute. */
  readonly anonymous: { readonly lifetime: number; readonly perMinute: number }
}

/** The default limits. The operator's settings replace them. */
export const usualPlans: AllPlans = {
  byName: {
    free: { perMonth: 100, perMinute: 10 },
    starter: { perMonth: 1_000, perMinute: 60 },
    business: { perMonth: 10_000, perMinute: 300 },
    enterprise: { perMonth: 100_000, perMinute: 1_000 }
  },
  anonymous: { lifetime: 10, perMinute: 10 }
}

export class Plans extends Context.Service<Plans, AllPlans>()("vatproof/domain/callers/Plans") {}

/**
 * Returns the limits of an account's keys. `perMonth` is the limit that the operator set for this account. If it is null, the
 * plan's limit applies.
 */
export const limitsOf = ({ byName }: AllPlans, plan: PlanName, perMonth: number | bigint | null): PlanLimits => ({
  ...byName[plan],
  ...(perMonth === null ? {} : { perMonth: Number(perMonth) })
})
