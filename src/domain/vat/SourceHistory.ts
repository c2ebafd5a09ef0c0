/** The calls of sources that the events name, per member state, in hours or days (UTC). */
import { Context, type Effect, Schema } from "effect"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import { SourceName } from "#domain/vat/Verdict.ts"

/** Maximum number of days of a history. */
export const maxDays = 90
/** A history of at most this number of days counts per hour, a longer one per day. */
export const maxDaysOfHours = 7

/**
 * The calls of a source about VAT IDs of one member state (its prefix), in the hour or day that begins at `fromMs`. `failed` has the
 * numbers of failed calls by the code of the source or the reason of the failure. `meanMs` and `maxMs` are durations of answered calls;
 * null if no call was answered.
 */
export const CallCounts = Schema.Struct({
  memberState: Schema.String,
  source: SourceName,
  fromMs: Schema.Number,
  calls: Schema.Number,
  answered: Schema.Number,
  failed: Schema.Record(Schema.String, Schema.Number),
  meanMs: Schema.NullOr(Schema.Number),
  maxMs: Schema.NullOr(Schema.Number)
})
export type CallCounts = typeof CallCounts.Type

export interface History {
  /** The time at which the counts were read. */
  readonly readAtMs: number
  readonly resolution: "hour" | "day"
  /** In the order of their times. A time without calls has no counts. */
  readonly counts: ReadonlyArray<CallCounts>
}

export class SourceHistory extends Context.Service<
  SourceHistory,
  {
    /** Returns the counts of today and of the days before, `days` days in UTC. They are at most a minute old. */
    readonly read: (days: number) => Effect.Effect<History, StoreUnavailable>
  }
>()("vatproof/domain/vat/SourceHistory") {}
