/** The proof that metering is exact: what stands on each meter is the sum of the units of the events that were charged to it. */
import { Context, type Effect } from "effect"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** A meter that differs. `units` is the sum over its `events`, which lie between the positions `first` and `last`, if there are any. */
export interface Difference {
  readonly meter: string
  readonly used: number
  readonly units: number
  readonly events: number
  readonly first: number | null
  readonly last: number | null
}

/** All meters at one moment: the log had `positions` events then. `differences` are at most 1,000 of `differing`. */
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
    /** Reads the whole log; appends go on meanwhile and are not part of it. */
    readonly check: Effect.Effect<UsageReport, StoreUnavailable>
    /** What is charged to client addresses instead of keys: how many there are, and the validations of all of them so far. */
    readonly anonymous: Effect.Effect<{ readonly addresses: number; readonly used: number }, StoreUnavailable>
  }
>()("vatproof/domain/callers/UsageAudit") {}
