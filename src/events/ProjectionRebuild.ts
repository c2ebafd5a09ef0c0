/**
 * Fills a projection's table anew beside the live one and puts it in its place. Readers and replicas go on meanwhile; they wait for the
 * renaming only. Needs the rights of the tables' owner, so it is a command of the operator and no part of the service.
 */
import { Effect, Schedule, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { logId } from "#events/AppendCommand.ts"
import { type LogGap, makeStep } from "#events/Projection.ts"
import type { ProjectionDefinition } from "#events/Projections.ts"
import * as StoreAccess from "#events/StoreAccess.ts"

/** A long reader makes the renaming wait, and the renaming makes all later readers wait: so it gives up soon and comes again. */
const lockTimeout = "500ms"
const attempts = 60
/** Nobody waits for the table that is filled, so its steps are larger than the live one's. */
const fillStep = 20_000

/** Rebuilds one projection; `progress` hears after each step how many events are applied, of how many. Gives back how many it were. */
export const run = Effect.fn("ProjectionRebuild.run")(function* (
  definition: ProjectionDefinition,
  progress: (applied: number, head: number) => Effect.Effect<void>
) {
  const sql = yield* SqlClient.SqlClient
  const projection = yield* definition
  const { name, version } = projection
  const next = `${name}_next`
  const step = yield* makeStep

  const findLive = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({ position: Schema.BigInt }),
    execute: () => sql`SELECT position FROM vatproof.projections WHERE log_id = ${logId} AND name = ${name} FOR UPDATE`
  })

  /** While the live projection's row is held it stands still: the new table passes it, then takes its place. */
  const takeOver = Effect.gen(function* () {
    yield* sql`SELECT set_config('lock_timeout', ${lockTimeout}, true)`
    const live = Number((yield* findLive(undefined)).position)
    const { position } = yield* Effect.repeat(step(projection, next), { until: (now) => now.position >= live })
    yield* sql`SELECT vatproof.finish_rebuild(${logId}::smallint, ${name})`
    return position
  }).pipe(sql.withTransaction, Effect.catchTag(["SchemaError", "NoSuchElementError"], Effect.die))

  yield* sql`SELECT vatproof.begin_rebuild(${logId}::smallint, ${name}, ${version})`
  yield* Effect.repeat(
    Effect.tap(step(projection, next, fillStep), ({ head, position }) => progress(position, head)),
    { until: ({ head, position }) => position >= head }
  )
  // An index over all that is there costs a fraction of one that grows with each event.
  yield* sql`SELECT vatproof.index_rebuild(${name})`
  return yield* Effect.retry(takeOver, { schedule: Schedule.spaced("250 millis"), times: attempts, while: isBusy })
})

const isBusy = (error: SqlError | LogGap) => isSqlError(error) && StoreAccess.isTransient(error)
