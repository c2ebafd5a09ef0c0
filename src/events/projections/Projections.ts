/**
 * Advances all read models that follow the log, on any replica. The background does so about once a second. A reader that must
 * see its own write advances them itself instead of waiting.
 */
import { Context, Effect, Exit, Layer, Schedule, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import { logDefects } from "#domain/kernel/LogDefects.ts"
import { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import { logId } from "#events/store/AppendCommand.ts"
import * as GroupCommit from "#events/store/GroupCommit.ts"
import { type LogGap, makeStep, maxStep, type Projection } from "#events/projections/Projection.ts"
import { type TableProjection, tableProjections } from "#events/projections/ProjectionCatalogue.ts"
import * as QueryPolicy from "#events/database/QueryPolicy.ts"
import * as Pacer from "#events/database/Pacer.ts"

/** How long a reader may wait for a projection to reach the log's head. */
const retryFor = "3 seconds"
/** Maximum lag of the auditors' views. Readers that cannot wait advance the table at once. Fewer, larger steps cost less. */
const pollEveryMs = 1_000
/** Events per step while callers are served, about 10 ms. */
const liveBatchSize = 1_000
/** Pause before checking whether a replica with newer rules has advanced its table. */
const pauseForOthers = "100 millis"
/** Pause after a failed iteration in the background. */
const pauseAfterFailure = "5 seconds"
const maxWaiting = 20_000

/**
 * Progress of a projection. `lag` counts the events it has not applied; `stalled_ms` is how long it has not advanced although
 * there are some. An `outdated` one follows older rules than this program's.
 */
export interface ProjectionState {
  readonly name: string
  readonly kind: TableProjection["kind"]
  readonly version: number
  readonly position: number
  readonly lag: number
  readonly stalled_ms: number
  readonly outdated: boolean
}

/** A definition takes the connection that its `apply` writes with. */
export type ProjectionDefinition = Effect.Effect<Projection, never, SqlClient.SqlClient>

const make = Effect.fnUntraced(function* (definitions: ReadonlyArray<ProjectionDefinition>) {
  const projections = yield* Effect.all(definitions)
  const access = yield* makeAccess
  const step = yield* makeStep
  yield* access.register(projections).pipe(QueryPolicy.withRetry("10 seconds"))

  /** Advances up to the head that was read before. */
  const moveTo = Effect.fnUntraced(function* (projection: Projection, { head, position }: ProgressRow, pace: Pacer.Pacer) {
    let now = position
    while (now < head) {
      yield* pace.wait(now - position, head - position)
      const { position: reached } = yield* step(projection, pace.batchSize)
      if (reached === now) yield* Effect.sleep(pauseForOthers)
      now = reached
    }
  })

  /** Advances until the table has everything that was appended before the call. */
  const catchUp = (projection: Projection) =>
    Effect.flatMap(access.look(projection.name), (progress) => moveTo(projection, progress, Pacer.atOnce(maxStep)))

  /** In the background, a recent move by any replica is enough: more replicas must not cause more and smaller steps. */
  const follow = Effect.fnUntraced(function* (projection: Projection) {
    const progress = yield* access.look(projection.name)
    const { head, movedAgoMs, position } = progress
    // Ignores a move in the future, which a clock that was set back can cause.
    const lately = movedAgoMs >= 0 && movedAgoMs < pollEveryMs / 2
    if (lately && head - position < maxStep) return
    const isBacklog = head - position > Pacer.backlog
    yield* moveTo(projection, progress, isBacklog ? Pacer.atOnce(maxStep) : yield* Pacer.evenly(liveBatchSize))
  })

  const joins = new Map<string, (_: undefined) => Effect.Effect<void, StoreUnavailable>>()
  for (const projection of projections) {
    // Readers that arrive during one iteration share the next one.
    const join = yield* GroupCommit.make({
      run: (waiting: ReadonlyArray<undefined>) =>
        Effect.as(
          forReaders(catchUp(projection)),
          waiting.map(() => Exit.void)
        ),
      maxBatch: maxWaiting,
      maxWaiting,
      onFull: () => new StoreUnavailable({})
    })
    joins.set(projection.name, join)
    yield* Effect.forkScoped(inBackground(projection, follow(projection)))
  }

  return {
    /** Succeeds when everything that was appended before the call is in the table. Waits at most 3 seconds. */
    upToDate: Effect.fn("Projections.upToDate")(
      (name: string) => joins.get(name)?.(undefined) ?? Effect.die(`There is no projection ${name}`)
    ),
    /** Progress of each projection. */
    list: access.list.pipe(QueryPolicy.withRetry(retryFor))
  }
})

/** Retrying cannot close a gap: an operator has to look at it. */
const forReaders = (iteration: Effect.Effect<void, SqlError | LogGap>): Effect.Effect<void, StoreUnavailable> =>
  iteration.pipe(
    Effect.catchTag("LogGap", (gap) => Effect.succeed(gap)),
    QueryPolicy.withRetry(retryFor),
    Effect.timeoutOrElse({ duration: retryFor, orElse: () => Effect.fail(new StoreUnavailable({})) }),
    Effect.flatMap((gap) => (gap === undefined ? Effect.void : Effect.fail(new StoreUnavailable({ cause: gap }))))
  )

/** Runs forever. Logs a failed iteration and retries after a pause. */
const inBackground = (projection: Projection, iteration: Effect.Effect<void, SqlError | LogGap>) =>
  iteration.pipe(
    Effect.catchTags({
      LogGap: (gap) => Effect.andThen(Effect.logError(gap.message), Effect.sleep(pauseAfterFailure)),
      SqlError: (error) =>
        Effect.logWarning(`Projection ${projection.name} could not be advanced; retrying in 5 s`, error).pipe(
          Effect.andThen(Effect.sleep(pauseAfterFailure))
        )
    }),
    logDefects(`Projection ${projection.name} iteration failed; retrying in 5 s`, pauseAfterFailure),
    Effect.repeat(Schedule.fixed(pollEveryMs))
  )

/** Positions of a projection and of the log, and the time of the projection's last move. */
interface ProgressRow {
  readonly position: number
  readonly head: number
  readonly movedAgoMs: number
}

const PlaceRow = Schema.Struct({
  name: Schema.String,
  version: Schema.Int,
  position: Schema.BigInt,
  head: Schema.BigInt,
  moved_ago_ms: Schema.BigInt
})

const progressColumns = `p.name, p.version, p.position, l.next_position AS head,
  (extract(epoch FROM clock_timestamp() - p.moved_at) * 1000)::bigint AS moved_ago_ms`

/** Queries that read and initialise the positions. */
const makeAccess = Effect.map(SqlClient.SqlClient, (sql) => {
  // The pending events may be younger than the last move.
  const findProgress = SqlSchema.findAll({
    Request: Schema.Void,
    Result: Schema.Struct({ ...PlaceRow.fields, position: Schema.NullOr(Schema.BigInt), stalled_ms: Schema.BigInt }),
    execute: () => sql`SELECT ${sql.literal(progressColumns)},
        (extract(epoch FROM clock_timestamp() - greatest(p.moved_at, e.recorded_at)) * 1000)::bigint AS stalled_ms
      FROM vatproof.projections p JOIN vatproof.logs l ON l.log_id = p.log_id
      LEFT JOIN vatproof.events e ON e.log_id = p.log_id AND e.position = p.position WHERE p.log_id = ${logId}`
  })

  const findPlace = SqlSchema.findOne({
    Request: Schema.String,
    Result: PlaceRow,
    execute: (name) => sql`SELECT ${sql.literal(progressColumns)}
      FROM vatproof.projections p JOIN vatproof.logs l ON l.log_id = p.log_id WHERE p.log_id = ${logId} AND p.name = ${name}`
  })

  return {
    look: (name: string) =>
      findPlace(name).pipe(
        Effect.map((progress): ProgressRow => ({
          position: Number(progress.position),
          head: Number(progress.head),
          movedAgoMs: Number(progress.moved_ago_ms)
        })),
        Effect.catchTag(["SchemaError", "NoSuchElementError"], Effect.die)
      ),
    /** A new projection starts at position 0. */
    register: (projections: ReadonlyArray<Projection>) =>
      Effect.forEach(
        projections,
        ({ name, version }) => sql`INSERT INTO vatproof.projections (log_id, name, version, position)
          VALUES (${logId}, ${name}, ${version}, 0) ON CONFLICT (log_id, name) DO NOTHING`,
        { discard: true }
      ),
    list: Effect.suspend(() =>
      Effect.map(findProgress(undefined), (rows) =>
        tableProjections.map(({ kind, name, version: newest }): ProjectionState => {
          const progress = rows.find((one) => one.name === name)
          // An inline table is always at the log's head.
          const position = Number(progress?.position ?? progress?.head ?? 0)
          const lag = Number(progress?.head ?? 0) - position
          // Ignores negative times, which a clock that was set back can cause.
          const stalled_ms = lag > 0 ? Math.max(0, Number(progress?.stalled_ms ?? 0)) : 0
          const version = progress?.version ?? 0
          return { name, kind, version, position, lag, stalled_ms, outdated: version < newest }
        })
      )
    )
  }
})

/** Progress of each projection, without advancing any. */
export const list = Effect.flatMap(makeAccess, (access) => access.list.pipe(QueryPolicy.withRetry(retryFor)))

export class Projections extends Context.Service<Projections, Effect.Success<ReturnType<typeof make>>>()(
  "vatproof/events/projections/Projections"
) {
  static readonly layer = (definitions: ReadonlyArray<ProjectionDefinition>) => Layer.effect(Projections, make(definitions))
}
