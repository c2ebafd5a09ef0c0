/** Reads the history of the sources from the projection `vatproof.source_hours`, after it has reached the head of the log. */
import { Cache, Clock, Context, DateTime, Duration, Effect, Exit, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { CallCounts, type History, maxDays, maxDaysOfHours, SourceHistory } from "#domain/vat/SourceHistory.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import { Projections } from "#events/log/projections/Projections.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import { sourceHours } from "#events/vat/SourceHours.ts"

const retryFor = "3 seconds"
/** How long this process serves a history that it has read. */
const timeToLive = "60 seconds"

const daysOf = { hour: maxDaysOfHours, day: maxDays }

/** Returns the start of the first of `days` days in UTC, of which the last one is today. */
const startOf = (nowMs: number, days: number) => {
  const dayMs = Duration.toMillis("1 day")
  return (Math.floor(nowMs / dayMs) - days + 1) * dayMs
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { upToDate } = yield* Projections

  const find = SqlSchema.findAll({
    Request: Schema.Struct({ resolution: Schema.Literals(["hour", "day"]), since: Schema.String }),
    Result: CallCounts,
    execute: ({ resolution, since }) => sql`SELECT r.member_state AS "memberState", r.source,
        (extract(epoch FROM r.at) * 1000)::float8 AS "fromMs", sum(r.calls)::float8 AS calls,
        coalesce(sum(r.calls) FILTER (WHERE r.outcome = 'answered'), 0)::float8 AS answered,
        coalesce(jsonb_object_agg(r.outcome, r.calls) FILTER (WHERE r.outcome <> 'answered'), '{}') AS failed,
        round(sum(r.ms_sum) FILTER (WHERE r.outcome = 'answered') / sum(r.calls) FILTER (WHERE r.outcome = 'answered'))::float8 AS "meanMs",
        max(r.ms_max) FILTER (WHERE r.outcome = 'answered')::float8 AS "maxMs"
      FROM (
        SELECT h.member_state, h.source, date_trunc(${resolution}, h.hour, 'UTC') AS at, h.outcome, sum(h.calls) AS calls,
          sum(h.ms_sum) AS ms_sum, max(h.ms_max) AS ms_max
        FROM vatproof.source_hours h WHERE h.log_id = ${logId} AND h.hour >= ${since}::timestamptz GROUP BY 1, 2, 3, 4) r
      GROUP BY r.at, r.member_state, r.source ORDER BY r.at, r.member_state, r.source`
  })

  const lookup = Effect.fn("SourceHistory.find")(function* (resolution: History["resolution"]) {
    yield* upToDate(sourceHours)
    const readAtMs = yield* Clock.currentTimeMillis
    const since = DateTime.formatIso(DateTime.makeUnsafe(startOf(readAtMs, daysOf[resolution])))
    const counts = yield* find({ resolution, since }).pipe(QueryPolicy.withRetry(retryFor))
    return { readAtMs, resolution, counts }
  })
  const histories = yield* Cache.makeWith(lookup, {
    capacity: 2,
    timeToLive: (exit) => (Exit.isSuccess(exit) ? timeToLive : Duration.zero)
  }).pipe(Effect.updateContext((_: Context.Context<never>) => Context.empty()))

  return {
    read: Effect.fnUntraced(function* (days: number) {
      const history = yield* Cache.get(histories, days > maxDaysOfHours ? "day" : "hour")
      const since = startOf(history.readAtMs, days)
      return { ...history, counts: history.counts.filter(({ fromMs }) => fromMs >= since) }
    })
  }
})

export const layer = Layer.effect(SourceHistory, make)
