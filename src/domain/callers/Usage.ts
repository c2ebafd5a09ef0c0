/** Billing periods and meters (rules 36, 38). */
import { DateTime } from "effect"

/** A calendar month in UTC; `end` is the start of the next one. `name` is `YYYY-MM`. */
export interface BillingPeriod {
  readonly name: string
  readonly start: DateTime.Utc
  readonly end: DateTime.Utc
}

export const billingPeriod = (now: DateTime.Utc): BillingPeriod => {
  const start = DateTime.startOf(now, "month")
  return { name: DateTime.formatIso(start).slice(0, 7), start, end: DateTime.add(start, { months: 1 }) }
}

/** The meter of a key for a period. */
export const keyMeter = (keyId: string, period: BillingPeriod): string => `key-${keyId}/${period.name}`

/** The lifetime meter of an anonymous client. */
export const anonymousMeter = (addressHash: string): string => `anonymous-${addressHash}`
