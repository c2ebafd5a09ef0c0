/** The calls of sources that the events name, per member state, in hours or days (UTC). */
import { Context, type Effect, Schema } from "effect"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import { SourceName } from "#domain/vat/Verdict.ts"

/** Maximum number of days of a history. */
export const maxDays = 90
/** A history of at most this number of days counts per hour, a longer one per day. */
export const maxDaysOfHours = 7

export const SourceCalls = Schema.Struct({
  from: Schema.String.annotate({ description: "Start of the hour or day in UTC", format: "date-time" }),
  source: SourceName,
  calls: Schema.Int.annotate({ description: "Calls of this source about VAT IDs of the member state" }),
  answered: Schema.Int.annotate({ description: "Calls with a verdict, valid or invalid" }),
  failed: Schema.Record(Schema.String, Schema.Int).annotate({
    description: "Calls without a verdict, by the code of the source, or by the reason if the source sent no code"
  }),
  mean_ms: Schema.NullOr(Schema.Int).annotate({ description: "Mean duration of the answered calls; null without one" }),
  max_ms: Schema.NullOr(Schema.Int).annotate({ description: "Duration of the longest answered call; null without one" })
}).annotate({ identifier: "SourceCalls" })
export type SourceCalls = typeof SourceCalls.Type

export const History = Schema.Struct({
  timestamp: Schema.String.annotate({ description: "Time of the counts, which are at most a minute old", format: "date-time" }),
  resolution: Schema.Literals(["hour", "day"]),
  member_states: Schema.Record(Schema.String, Schema.Array(SourceCalls)).annotate({
    description:
      "Calls by the prefix of the VAT IDs (Greece: EL, Northern Ireland: XI), oldest first. A period without calls is absent"
  })
}).annotate({ identifier: "SourceHistory", description: "Calls of the sources by this service" })
export type History = typeof History.Type

export class SourceHistory extends Context.Service<
  SourceHistory,
  {
    /** Returns the counts of `days` days in UTC, the last of which is today. They are at most a minute old. */
    readonly read: (days: number) => Effect.Effect<History, StoreUnavailable>
  }
>()("vatproof/domain/vat/SourceHistory") {}
