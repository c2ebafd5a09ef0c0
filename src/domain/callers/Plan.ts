/** Plans and what they allow (rule 38). The numbers are the operator's to change; see AppConfig. */
import { Context, Schema } from "effect"

export const PlanName = Schema.Literals(["free", "starter", "business", "enterprise"])
export type PlanName = typeof PlanName.Type

/** Validations per calendar month (UTC) and key, and per minute and key. */
export interface PlanLimits {
  readonly perMonth: number
  readonly perMinute: number
}

export interface AllPlans {
  readonly byName: Readonly<Record<PlanName, PlanLimits>>
  /** Without a key: validations for good, and per minute, both per client address. */
  readonly anonymous: { readonly lifetime: number; readonly perMinute: number }
}

export class Plans extends Context.Service<Plans, AllPlans>()("vatproof/domain/callers/Plans") {}

/** What the keys of an account may do. `perMonth` is its own number; null means the plan's. */
export const limitsOf = ({ byName }: AllPlans, plan: PlanName, perMonth: number | bigint | null): PlanLimits => ({
  ...byName[plan],
  ...(perMonth === null ? {} : { perMonth: Number(perMonth) })
})

/** Whether a plan has what is paid for: qualified confirmations. */
export const isPaid = (plan: PlanName): boolean => plan !== "free"
