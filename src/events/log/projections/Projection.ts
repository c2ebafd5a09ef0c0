/** An asynchronous projection, which follows the log, and the step that advances it. */
import { Effect, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { logId } from "#events/log/store/AppendCommand.ts"
import { Int8 } from "#events/log/database/Rows.ts"
import type { QueryFailure } from "#events/log/database/QueryPolicy.ts"

/** The events at positions `from` (inclusive) to `to` (exclusive). */
export const ProjectionBatch = Schema.Struct({ from: Schema.Int, to: Schema.Int })
export type ProjectionBatch = typeof ProjectionBatch.Type

/** Numbers of rows that were missing, surplus, or different from the rows that the events produce. */
export const Changes = Schema.Struct({ missing: Int8, surplus: Int8, different: Int8 })
export type Changes = typeof Changes.Type

/**
 * An asynchronous projection. The table is `vatproof.<name>` (migrations/projections.sql), and the service has SELECT, INSERT and UPDATE
 * rights on it. `version` increases when the rules of the rows change. After that, old rows stay until `vatproof projections rebuild`
 * corrects them. `schema` is pg_temp while a rebuild computes a table of sums again.
 */
export interface Projection {
  readonly name: string
  readonly version: number
  /** Writes the rows of a batch, in the transaction that advances the projection: idempotent, or adds to sums (`hasRowsOfEvents`). */
  readonly apply: (batch: ProjectionBatch, schema: "vatproof" | "pg_temp") => Effect.Effect<Changes, QueryFailure>
}

export const define = (projection: Projection): Projection => projection

/**
 * An event is missing in the log. The projection stops before the missing event, because rows that are computed without it could be
 * wrong.
 */
export class LogGap extends Schema.TaggedError<LogGap>()("LogGap", {
  projection: Schema.String,
  from: Schema.Int,
  to: Schema.Int,
  found: Schema.Int
}) {
  override get message() {
    return `The projection ${this.projection} cannot be updated, because events are missing: positions ${this.from} to ${this.to - 1} have only ${this.found} events. Run "vatproof audit verify"`
  }
}

/** Maximum number of events per step. A step locks the projection's row for a few hundredths of a second. Larger steps cost less per event. */
export const maxStep = 5_000

/** Progress of a projection: the next `position` to apply, the `head` of the log, and the `version` of the rules that filled the table. */
export const Progress = Schema.Struct({ position: Schema.BigInt, head: Schema.BigInt, version: Schema.Int })

/**
 * Creates a function that advances a projection by up to `atMost` events in one transaction and returns its progress. It waits while
 * another replica advances the projection. It changes nothing if a newer version of the program has filled the table.
 */
export const makeStep = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // Locks the row of the projection. Also disables bitmap scans in this transaction, so that the planner reads a range of positions
  // by the index on positions. A bitmap scan of another index is slow.
  const lock = SqlSchema.findOne({
    Request: Schema.String,
    Result: Progress,
    execute: (name) => sql`SELECT p.position, p.version, l.next_position AS head, set_config('enable_bitmapscan', 'off', true)
      FROM vatproof.projections p JOIN vatproof.logs l ON l.log_id = p.log_id
      WHERE p.log_id = ${logId} AND p.name = ${name} FOR NO KEY UPDATE OF p`
  })

  const count = SqlSchema.findOne({
    Request: Schema.Struct({ from: Schema.Int, to: Schema.Int }),
    Result: Schema.Struct({ found: Schema.BigInt }),
    execute: ({ from, to }) => sql`SELECT count(*) AS found FROM vatproof.events
      WHERE log_id = ${logId} AND position >= ${from} AND position < ${to}`
  })

  return Effect.fnUntraced(
    function* (projection: Projection, atMost: number = maxStep) {
      const { name } = projection
      const { head, position, version } = yield* lock(name)
      const from = Number(position)
      const to = Math.min(Number(head), from + atMost)
      if (to <= from || version > projection.version) return { position: from, head: Number(head) }
      const found = Number((yield* count({ from, to })).found)
      if (found !== to - from) return yield* new LogGap({ projection: projection.name, from, to, found })
      yield* projection.apply({ from, to }, "vatproof")
      yield* sql`UPDATE vatproof.projections SET position = ${to}, moved_at = clock_timestamp() WHERE log_id = ${logId} AND name = ${name}`
      return { position: to, head: Number(head) }
    },
    sql.withTransaction,
    Effect.catchTag(["SchemaError", "NoSuchElementError"], Effect.die)
  )
})
