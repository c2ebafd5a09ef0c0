/**
 * Verifies that metering is exact: each meter equals the sum of the units of the events charged to it. One statement compares all
 * meters, so that it sees meters and events in the same snapshot of the database.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { Int8 } from "#events/log/database/Rows.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"

/** Timeout of the comparison, for a log with many millions of events. */
const longest = "1h"
const maxDifferences = 1_000

/**
 * A meter whose value `used` differs from `units`, the sum over its events. `first` and `last` are the lowest and the highest
 * position of these events; null without events.
 */
const Difference = Schema.Struct({
  meter: Schema.String,
  used: Schema.Int,
  units: Schema.Int,
  events: Schema.Int,
  first: Schema.NullOr(Schema.Int),
  last: Schema.NullOr(Schema.Int)
})
export type Difference = typeof Difference.Type

/** Totals over all meters of a log with `positions` events. `differences` lists at most 1,000 of the `differing` meters. */
const Totals = Schema.Struct({
  positions: Int8,
  meters: Int8,
  used: Int8,
  units: Int8,
  differing: Int8,
  differences: Schema.Array(Difference)
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const compare = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Totals,
    execute: () => sql`WITH charged AS (
        SELECT meter_id, sum(units) AS units, count(*) AS events, min(position) AS first, max(position) AS last
        FROM vatproof.events WHERE log_id = ${logId} AND meter_id IS NOT NULL GROUP BY meter_id),
      both_sides AS (
        SELECT coalesce(m.meter_id, c.meter_id) AS meter, coalesce(m.used, 0) AS used, coalesce(c.units, 0)::bigint AS units,
          coalesce(c.events, 0) AS events, c.first, c.last
        FROM charged c FULL JOIN (SELECT meter_id, used FROM vatproof.meters WHERE log_id = ${logId}) m ON m.meter_id = c.meter_id),
      total AS (
        SELECT count(*) AS meters, coalesce(sum(used), 0)::bigint AS used, coalesce(sum(units), 0)::bigint AS units,
          count(*) FILTER (WHERE used <> units) AS differing FROM both_sides)
      SELECT (SELECT next_position FROM vatproof.logs WHERE log_id = ${logId}) AS positions, meters, used, units, differing,
        coalesce((SELECT jsonb_agg(d ORDER BY d.meter) FROM (SELECT meter, used, units, events, first, last FROM both_sides WHERE used <> units ORDER BY meter
          LIMIT ${maxDifferences}) d), '[]') AS differences FROM total`
  })

  const findAnonymous = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({ addresses: Int8, used: Int8 }),
    execute: () => sql`SELECT count(*) AS addresses, coalesce(sum(used), 0)::bigint AS used
      FROM vatproof.meters WHERE log_id = ${logId} AND meter_id LIKE 'anonymous-%'`
  })

  return {
    /** Compares every meter with its events. Reads the whole log in one snapshot, which concurrent appends do not change. */
    check: sql`SELECT set_config('statement_timeout', ${longest}, true)`.pipe(
      Effect.andThen(compare(undefined)),
      sql.withTransaction,
      Effect.catchTags({ SqlError: QueryPolicy.refused, SchemaError: Effect.die, NoSuchElementError: Effect.die })
    ),
    /** Returns the number of IP addresses that used the service without a key, and the sum of their validations. */
    anonymous: findAnonymous(undefined).pipe(QueryPolicy.withRetry("5 seconds"))
  }
})

export class UsageAudit extends Context.Service<UsageAudit, Effect.Success<typeof make>>()("vatproof/events/callers/UsageAudit") {
  static readonly layer = Layer.effect(UsageAudit, make)
}
