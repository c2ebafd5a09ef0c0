/**
 * Compares all meters with the events in one statement, so that the statement sees meters and events in the same snapshot of the
 * database.
 */
import { Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { type Difference, UsageAudit } from "#domain/callers/UsageAudit.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"

/** Timeout of the comparison, for a log with many millions of events. */
const longest = "1h"
const maxDifferences = 1_000

const Total = Schema.Struct({
  positions: Schema.BigInt,
  meters: Schema.BigInt,
  used: Schema.BigInt,
  units: Schema.BigInt,
  differing: Schema.BigInt,
  meter: Schema.NullOr(Schema.String),
  meter_used: Schema.NullOr(Schema.BigInt),
  meter_units: Schema.NullOr(Schema.BigInt),
  events: Schema.NullOr(Schema.BigInt),
  first: Schema.NullOr(Schema.BigInt),
  last: Schema.NullOr(Schema.BigInt)
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const compare = SqlSchema.findNonEmpty({
    Request: Schema.Void,
    Result: Total,
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
      SELECT (SELECT next_position FROM vatproof.logs WHERE log_id = ${logId}) AS positions, t.meters, t.used, t.units, t.differing,
        d.meter, d.used AS meter_used, d.units AS meter_units, d.events, d.first, d.last
      FROM total t LEFT JOIN (
        SELECT meter, used, units, events, first, last FROM both_sides WHERE used <> units ORDER BY meter LIMIT ${maxDifferences}) d ON true
      ORDER BY d.meter`
  })

  const check = Effect.gen(function* () {
    yield* sql`SELECT set_config('statement_timeout', ${longest}, true)`
    return yield* compare(undefined)
  }).pipe(
    sql.withTransaction,
    Effect.map((rows) => {
      const [total] = rows
      return {
        positions: Number(total.positions),
        meters: Number(total.meters),
        used: Number(total.used),
        units: Number(total.units),
        differing: Number(total.differing),
        differences: rows.flatMap((row) => (row.meter === null ? [] : [difference(row.meter, row)]))
      }
    }),
    Effect.catchTags({ SqlError: QueryPolicy.refused, SchemaError: Effect.die, NoSuchElementError: Effect.die })
  )

  const findAnonymous = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({ addresses: Schema.BigInt, used: Schema.BigInt }),
    execute: () => sql`SELECT count(*) AS addresses, coalesce(sum(used), 0)::bigint AS used
      FROM vatproof.meters WHERE log_id = ${logId} AND meter_id LIKE 'anonymous-%'`
  })
  const anonymous = findAnonymous(undefined).pipe(
    Effect.map(({ addresses, used }) => ({ addresses: Number(addresses), used: Number(used) })),
    QueryPolicy.withRetry("5 seconds")
  )

  return UsageAudit.of({ check, anonymous })
})

const difference = (meter: string, row: typeof Total.Type): Difference => ({
  meter,
  used: Number(row.meter_used),
  units: Number(row.meter_units),
  events: Number(row.events),
  first: row.first === null ? null : Number(row.first),
  last: row.last === null ? null : Number(row.last)
})

export const layer = Layer.effect(UsageAudit, make)
