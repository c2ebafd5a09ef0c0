/** Proves that metering is exact: each meter equals the sum of the units of the events charged to it. */
import { Context, type Effect } from "effect"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** A wrong meter. `units` is the sum over its `events`, which lie between the positions `first` and `last`, if there are any. */
export interface Difference {
  readonly meter: string
  readonly used: number
  readonly units: number
  readonly events: number
  readonly first: number | null
  readonly last: number | null
}

/** All meters in one snapshot, in which the log had `positions` events. `differences` has at most 1,000 of `differing`. */
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
    /** Reads the whole log; concurrent appends are excluded. */
    readonly check: Effect.Effect<UsageReport, StoreUnavailable>
    /** Returns the number of client addresses charged without a key, and the sum of their validations. */
    readonly anonymous: Effect.Effect<{ readonly addresses: number; readonly used: number }, StoreUnavailable>
  }
>()("vatproof/domain/callers/UsageAudit") {}
