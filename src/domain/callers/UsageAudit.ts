/** Verifies that metering is exact: each meter equals the sum of the units of the events charged to it. */
import { Context, type Effect } from "effect"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/**
 * A meter whose value `used` differs from `units`, the sum over its events.
 * `first` and `last` are the lowest and the highest position of these events; null without events.
 */
export interface Difference {
  readonly meter: string
  readonly used: number
  readonly units: number
  readonly events: number
  readonly first: number | null
  readonly last: number | null
}

/**
 * Totals over all meters, from one snapshot of a log with `positions`
 * events. `differences` lists at most 1,000 of the `differing` meters.
 */
export interface UsageReport {
  readonly positions: number
  readonly meters: number
  readonly used: number
  readonly units: number
  readonly differing: number
  readonly differences: ReadonlyArray<Difference>
}

export class UsageAudit extends Context.Service<
  UsageAudit,
  {
    /** Compares every meter with its events. Reads the whole log in one snapshot, which concurrent appends do not change. */
    readonly check: Effect.Effect<UsageReport, StoreUnavailable>
    /** Returns the number of IP addresses that used the service without a key, and the sum of their validations. */
    readonly anonymous: Effect.Effect<{ readonly addresses: number; readonly used: number }, StoreUnavailable>
  }
>()("vatproof/domain/callers/UsageAudit") {}
