/** Compares the log with the requests of a load, to find lost and duplicate events. */
import { Effect, type Redacted, Schedule, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import * as Postgres from "#infra/postgres/Postgres.ts"
import { isSuccess, type Outcome } from "#test/faults/Load.ts"

export interface Count {
  /** Requests that succeeded. */
  readonly acknowledged: number
  /** Acknowledged requests without an event. */
  readonly lost: number
  /** Requests with more than one event of a type, whether the request was acknowledged or not. */
  readonly duplicates: number
  /** Requests that did not succeed although their event is stored, because their response was lost. */
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
  streams_wrong: Schema.Int,
  items: Schema.Int,
  items_wrong: Schema.Int,
  contacts_missing: Schema.Int
})

/** Types of the events that a request of the load stores. */
const types = `'VatIdVerified', 'VatIdVerificationFailed', 'BatchAccepted', 'AccountRegistered', 'AccountSignedUp', 'EmailVerified',
  'ApiKeyIssued', 'ApiKeyRotated'`

/** Time within which a replica that was killed leaves its items to another one, and more. */
const settledWithin = "90 seconds"

const read = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const findStored = SqlSchema.findAll({
    Request: Schema.Void,
    Result: Stored,
    execute:
      () => sql`SELECT id, max(times)::int AS times FROM (SELECT metadata::jsonb ->> 'request_id' AS id, type, count(*) AS times
      FROM vatproof.events WHERE type IN (${sql.literal(types)}) GROUP BY 1, 2) AS e GROUP BY 1`
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
        WHERE e.events IS DISTINCT FROM s.version OR e.newest IS DISTINCT FROM s.version)::int AS streams_wrong,
      (SELECT count(*) FROM vatproof.tasks)::int AS items,
      (SELECT count(*) FROM vatproof.tasks t LEFT JOIN (SELECT causation_id, count(*) AS events, sum(units) AS units FROM vatproof.events
        WHERE causation_id IS NOT NULL GROUP BY 1) e ON e.causation_id = t.task_id
        WHERE coalesce(e.events, 0) <> (t.state = 'final')::int OR coalesce(e.units, 0) <> (t.state = 'final')::int)::int AS items_wrong,
      (SELECT count(*) FROM vatproof.accounts a LEFT JOIN vatproof.contacts c USING (account_id) WHERE c.account_id IS NULL)::int
        AS contacts_missing`
  })
  return { stored: yield* findStored(undefined), log: yield* findLogState(undefined) }
})

/** Waits until each item of the accepted batches has its answer. Fails if an item is still open after `settledWithin`. */
export const settled = Effect.fnUntraced(function* (url: Redacted.Redacted) {
  const open = Effect.flatMap(
    SqlClient.SqlClient,
    (sql) =>
      sql`SELECT FROM vatproof.uploads WHERE batch_id IS NOT NULL UNION ALL SELECT FROM vatproof.tasks WHERE closed_by IS NULL`
  )
  yield* Effect.repeat(open, { until: (rows) => rows.length === 0, schedule: Schedule.spaced("200 millis") }).pipe(
    Effect.provide(Postgres.layerAdministrator({ url, maxConnections: 1 }), { local: true })
  )
}, Effect.timeout(settledWithin))

/** Counts the events in the database of `url`, as its administrator. */
export const count = Effect.fnUntraced(function* (url: Redacted.Redacted, outcomes: ReadonlyArray<Outcome>) {
  const { stored, log } = yield* Effect.provide(read, Postgres.layerAdministrator({ url, maxConnections: 1 }), { local: true })
  const times = new Map(stored.map((row) => [row.id, row.times]))
  const acknowledged = outcomes.filter(isSuccess)
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
      ...(log.items_wrong === 0 ? [] : [`${log.items_wrong} of ${log.items} items have not exactly one charged answer`]),
      ...(log.contacts_missing === 0 ? [] : [`${log.contacts_missing} accounts have no contact`]),
      ...(log.streams_wrong === 0 ? [] : [`${log.streams_wrong} streams have a version that differs from their number of events`])
    ]
  }
  return result
})
