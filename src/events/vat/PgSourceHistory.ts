/** Reads the history of the sources from the projection `vatproof.source_hours`, after it has reached the head of the log. */
import { Cache, DateTime, Effect, Exit, Layer, Record, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { memberStates } from "#domain/vat/MemberStates.ts"
import { type History, maxDays, maxDaysOfHours, SourceCalls, SourceHistory } from "#domain/vat/SourceHistory.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import { Projections } from "#events/log/projections/Projections.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import { sourceHours } from "#events/vat/SourceHours.ts"

const retryFor = "3 seconds"

/** Returns the start of the first of `days` days, the last of which has the time. */
const startOf = (time: string, days: number) =>
  DateTime.formatIso(DateTime.subtract(DateTime.startOf(DateTime.makeUnsafe(time), "day"), { days: days - 1 }))

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { upToDate } = yield* Projections

  const find = SqlSchema.findAll({
    Request: Schema.Struct({ resolution: Schema.String, since: Schema.String }),
    Result: Schema.Struct({ ...SourceCalls.fields, member_state: Schema.String }),
    execute: ({ resolution, since }) => sql`SELECT r.member_state, r.source, sum(r.calls)::int AS calls,
        to_char(r.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS from,
        coalesce(sum(r.calls) FILTER (WHERE r.outcome = 'answered'), 0)::int AS answered,
        coalesce(jsonb_object_agg(r.outcome, r.calls) FILTER (WHERE r.outcome <> 'answered'), '{}') AS failed,
        (sum(r.ms_sum) FILTER (WHERE r.outcome = 'answered') / sum(r.calls) FILTER (WHERE r.outcome = 'answered'))::int AS mean_ms,
        max(r.ms_max) FILTER (WHERE r.outcome = 'answered') AS max_ms
      FROM (
        SELECT h.member_state, h.source, date_trunc(${resolution}, h.hour, 'UTC') AS at, h.outcome, sum(h.calls) AS calls,
          sum(h.ms_sum) AS ms_sum, max(h.ms_max) AS ms_max
        FROM vatproof.source_hours h WHERE h.log_id = ${logId} AND h.hour >= ${since}::timestamptz GROUP BY 1, 2, 3, 4) r
      GROUP BY r.at, r.member_state, r.source ORDER BY r.at, r.member_state, r.source`
  })

  const lookup = Effect.fn("SourceHistory.find")(function* (resolution: History["resolution"]) {
    yield* upToDate(sourceHours)
    const timestamp = DateTime.formatIso(yield* DateTime.now)
    const since = startOf(timestamp, resolution === "day" ? maxDays : maxDaysOfHours)
    const rows = yield* find({ resolution, since }).pipe(QueryPolicy.withRetry(retryFor))
    const byState = Map.groupBy(rows, ({ member_state }) => member_state)
    const callsOf = (prefix: string) => (byState.get(prefix) ?? []).map(({ member_state: _, ...calls }): SourceCalls => calls)
    const member_states = Object.fromEntries(Array.from(memberStates.keys(), (prefix) => [prefix, callsOf(prefix)]))
    return { timestamp, resolution, member_states }
  })
  // This process serves a history for a minute.
  const histories = yield* Cache.makeWith(lookup, {
    capacity: 2,
    timeToLive: (exit) => (Exit.isSuccess(exit) ? 60_000 : 0)
  })

  return {
    read: Effect.fnUntraced(function* (days: number) {
      const history = yield* Cache.get(histories, days > maxDaysOfHours ? "day" : "hour")
      const since = startOf(history.timestamp, days)
      return {
        ...history,
        member_states: Record.map(history.member_states, (calls) => calls.filter(({ from }) => from >= since))
      }
    })
  }
})

export const layer = Layer.effect(SourceHistory, make)
