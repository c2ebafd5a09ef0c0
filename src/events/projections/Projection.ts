/** One read model that follows the log, and the single step that moves it on (ARCHITECTURE, "Projections"). */
import { Effect, Schema, SchemaTransformation } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { logId } from "#events/store/AppendCommand.ts"
import type { QueryFailure } from "#events/database/QueryPolicy.ts"

/** The events at positions `from` up to, but not including, `to`. */
export const ProjectionBatch = Schema.Struct({ from: Schema.Int, to: Schema.Int })
export type ProjectionBatch = typeof ProjectionBatch.Type

const Count = Schema.BigInt.pipe(
  Schema.decodeTo(
    Schema.Int,
    SchemaTransformation.transform({ decode: (big) => Number(big), encode: (number) => BigInt(number) })
  )
)

/** Rows that a table lacked, rows that it had too many, and rows that were not as the events make them. */
export const Changes = Schema.Struct({ missing: Count, surplus: Count, different: Count })
export type Changes = typeof Changes.Type

/**
 * One read model that follows the log. Its table is `vatproof.<name>` (migrations/projections.sql), with SELECT, INSERT and UPDATE for the service.
 * `version` rises when the rules of its rows change: what is in the table then follows old rules until `projections rebuild`.
 */
export interface Projection {
  readonly name: string
  readonly version: number
  /** Writes what the events mean, in the transaction that moves the checkpoint. Doing it again changes nothing. */
  readonly apply: (batch: ProjectionBatch) => Effect.Effect<Changes, QueryFailure>
}

export const define = (projection: Projection): Projection => projection

/** The log does not have all the events it counts: nothing may be concluded from the rest. */
export class LogGap extends Schema.TaggedError<LogGap>()("LogGap", {
  projection: Schema.String,
  from: Schema.Int,
  to: Schema.Int,
  found: Schema.Int
}) {
  override get message() {
    return `The projection ${this.projection} stops: of the ${this.to - this.from} events from position ${this.from} on, only ${this.found} are there`
  }
}

/** Events of one step at most: some hundredths of a second, so that the row's lock is held for no longer. Few large ones cost least. */
export const maxStep = 5_000

/** `position` is the next one to apply, `head` that of the next event to come; `version` is that of the rules that filled the table. */
export const Progress = Schema.Struct({ position: Schema.BigInt, head: Schema.BigInt, version: Schema.Int })

/**
 * Moves a projection on by up to `atMost` events in one transaction, and says where it is then. It waits for a replica that is moving it just now. Newer rules than ours have the table for themselves.
 */
export const makeStep = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // Whatever the planner believes of the tables, a range of positions is read by the index that has it, which a bitmap of another one is not.
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
      yield* projection.apply({ from, to })
      yield* sql`UPDATE vatproof.projections SET position = ${to}, moved_at = clock_timestamp() WHERE log_id = ${logId} AND name = ${name}`
      return { position: to, head: Number(head) }
    },
    sql.withTransaction,
    Effect.catchTag(["SchemaError", "NoSuchElementError"], Effect.die)
  )
})
