/** Compares the log with the requests of a load, to find lost and duplicate events. */
import { Effect, type Redacted, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import * as Postgres from "#infra/postgres/Postgres.ts"
import type { Outcome } from "#test/faults/Load.ts"

export interface Count {
  /** Requests that returned 200. */
  readonly acknowledged: number
  /** Acknowledged requests without an event. */
  readonly lost: number
  /** Requests with more than one event, whether the request was acknowledged or not. */
  readonly duplicates: number
  /** Requests that did not return 200 although their event is stored, because their response was lost. */
  readonly unacknowledged: number
  /** Inconsistencies of the log. */
  readonly defects: ReadonlyArray<string>
  readonly events: number
}

const Stored = Schema.Struct({ id: Schema.String, times: Schema.Int })
const LogState = Schema.Struct({
  head: Schema.Int,
  events: Schema.Int,
  newest: Schema.Int,
  meters_wrong: Schema.Int,
  streams_wrong: Schema.Int
})

const read = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const findStored = SqlSchema.findAll({
    Request: Schema.Void,
    Result: Stored,
    execute: () => sql`SELECT metadata::jsonb ->> 'request_id' AS id, count(*)::int AS times FROM vatproof.events
      WHERE type IN ('VatIdVerified', 'VatIdVerificationFailed') GROUP BY 1`
  })
  const findLogState = SqlSchema.findOne({
    Request: Schema.Void,
    Result: LogState,
    execute: () => sql`SELECT (SELECT next_position FROM vatproof.logs WHERE log_id = 0)::int AS head,
      (SELECT count(*) FROM vatproof.events)::int AS events,
      (SELECT coalesce(max(position), -1) FROM vatproof.events)::int AS newest,
      (SELECT count(*) FROM (SELECT meter_id, sum(units) AS units FROM vatproof.events WHERE meter_id IS NOT NULL GROUP BY 1) e
        FULL JOIN vatproof.meters m USING (meter_id) WHERE coalesce(e.units, 0) <> coalesce(m.used, 0))::int AS meters_wrong,
      (SELECT count(*) FROM (SELECT stream_id, count(*) AS events, max(version) AS newest FROM vatproof.events GROUP BY 1) e
        FULL JOIN vatproof.streams s USING (stream_id)
        WHERE e.events IS DISTINCT FROM s.version OR e.newest IS DISTINCT FROM s.version)::int AS streams_wrong`
  })
  return { stored: yield* findStored(undefined), log: yield* findLogState(undefined) }
})

/** Counts the events in the database of `url`, as its administrator. */
export const count = Effect.fnUntraced(function* (url: Redacted.Redacted, outcomes: ReadonlyArray<Outcome>) {
  const { stored, log } = yield* Effect.provide(read, Postgres.layerAdministrator({ url, maxConnections: 1 }), { local: true })
  const times = new Map(stored.map((row) => [row.id, row.times]))
  const acknowledged = outcomes.filter(({ status }) => status === 200)
  const sent = new Set(outcomes.map(({ id }) => id))
  const acknowledgedIds = new Set(acknowledged.map(({ id }) => id))
  const result: Count = {
    acknowledged: acknowledged.length,
    lost: acknowledged.filter(({ id }) => !times.has(id)).length,
    duplicates: stored.filter((row) => sent.has(row.id) && row.times > 1).length,
    unacknowledged: stored.filter((row) => sent.has(row.id) && !acknowledgedIds.has(row.id)).length,
    events: log.events,
    defects: [
      ...(log.events === log.head && log.newest === log.head - 1
        ? []
        : [`positions are not dense: ${log.events} events up to ${log.newest}, next is ${log.head}`]),
      ...(log.meters_wrong === 0 ? [] : [`${log.meters_wrong} meters differ from the sum of their events`]),
      ...(log.streams_wrong === 0 ? [] : [`${log.streams_wrong} streams have a version that differs from their number of events`])
    ]
  }
  return result
})
