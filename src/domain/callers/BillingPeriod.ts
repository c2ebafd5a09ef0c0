/** Billing periods and meters (rules 36, 38). */
import { DateTime } from "effect"

/** A calendar month in UTC. `end` is the start of the next month, and `name` is `YYYY-MM`. */
export interface BillingPeriod {
  readonly name: string
  readonly start: DateTime.Utc
  readonly end: DateTime.Utc
}

/** Returns the period that contains a time. */
export const billingPeriod = (now: DateTime.Utc): BillingPeriod => {
  const start = DateTime.startOf(now, "month")
  return { name: DateTime.formatIso(start).slice(0, 7), start, end: DateTime.add(start, { months: 1 }) }
}

/** Returns the name of the meter that counts a key's validations in a period. */
export const keyMeter = (keyId: string, period: BillingPeriod): string => `key-${keyId}/${period.name}`

/** Returns the name of the meter that counts all validations of a client without a key, by its IP address. */
export const anonymousMeter = (addressHash: string): string => `anonymous-${addressHash}`
