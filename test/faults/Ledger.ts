/** Compares the log with the requests of a load: every acknowledged request has its event, and none has two. */
import { Effect, type Redacted, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import * as Postgres from "#infra/postgres/Postgres.ts"
import type { Outcome } from "#test/faults/Load.ts"

export interface Count {
  /** Requests that were answered with 200. */
  readonly acknowledged: number
  /** Of those, how many have no event. */
  readonly lost: number
  /** Requests with more than one event, acknowledged or not. */
  readonly doubled: number
  /** Requests with an event that were not answered with 200: their response was lost. */
  readonly unheard: number
  /** The problems of the log itself, as text; empty if there are none. */
  readonly defects: ReadonlyArray<string>
  readonly events: number
}

const Stored = Schema.Struct({ id: Schema.String, times: Schema.Int })
const Whole = Schema.Struct({
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
  const findWhole = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Whole,
    execute: () => sql`SELECT (SELECT next_position FROM vatproof.logs WHERE log_id = 0)::int AS head,
      (SELECT count(*) FROM vatproof.events)::int AS events,
      (SELECT coalesce(max(position), -1) FROM vatproof.events)::int AS newest,
      (SELECT count(*) FROM (SELECT meter_id, sum(units) AS units FROM vatproof.events WHERE meter_id IS NOT NULL GROUP BY 1) e
        FULL JOIN vatproof.meters m USING (meter_id) WHERE coalesce(e.units, 0) <> coalesce(m.used, 0))::int AS meters_wrong,
      (SELECT count(*) FROM (SELECT stream_id, count(*) AS events, max(version) AS newest FROM vatproof.events GROUP BY 1) e
        FULL JOIN vatproof.streams s USING (stream_id)
        WHERE e.events IS DISTINCT FROM s.version OR e.newest IS DISTINCT FROM s.version)::int AS streams_wrong`
  })
  return { stored: yield* findStored(undefined), whole: yield* findWhole(undefined) }
})

/** Counts in the database of `url`, as its administrator. */
export const count = Effect.fnUntraced(function* (url: Redacted.Redacted, outcomes: ReadonlyArray<Outcome>) {
  const { stored, whole } = yield* Effect.provide(read, Postgres.layerAdministrator({ url, maxConnections: 1 }), { local: true })
  const times = new Map(stored.map((row) => [row.id, row.times]))
  const acknowledged = outcomes.filter(({ status }) => status === 200)
  const sent = new Set(outcomes.map(({ id }) => id))
  const heard = new Set(acknowledged.map(({ id }) => id))
  const found: Count = {
    acknowledged: acknowledged.length,
    lost: acknowledged.filter(({ id }) => !times.has(id)).length,
    doubled: stored.filter((row) => sent.has(row.id) && row.times > 1).length,
    unheard: stored.filter((row) => sent.has(row.id) && !heard.has(row.id)).length,
    events: whole.events,
    defects: [
      ...(whole.events === whole.head && whole.newest === whole.head - 1
        ? []
        : [`positions are not dense: ${whole.events} events up to ${whole.newest}, next is ${whole.head}`]),
      ...(whole.meters_wrong === 0 ? [] : [`${whole.meters_wrong} meters are not the sum of their events`]),
      ...(whole.streams_wrong === 0 ? [] : [`${whole.streams_wrong} streams have another version than events`])
    ]
  }
  return found
})
