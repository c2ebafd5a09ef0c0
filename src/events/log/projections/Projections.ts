/**
 * Advances the asynchronous projections. Each replica does so in the background about once a second. A reader that needs all events up
 * to now advances its table at once instead of waiting.
 */
import { Context, Effect, Exit, Layer, Schedule, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import * as Worker from "#domain/concurrency/Worker.ts"
import { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import * as GroupCommit from "#events/log/store/GroupCommit.ts"
import { type LogGap, makeStep, maxStep, type Projection } from "#events/log/projections/Projection.ts"
import { type TableProjection, TableProjections } from "#events/log/projections/TableProjection.ts"
import { Int8 } from "#events/log/database/Rows.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import * as Pacer from "#events/log/database/Pacer.ts"

/** Maximum time that a reader waits until a table has reached the head of the log. */
const retryFor = "3 seconds"
/** Interval of the background iterations. A shorter interval would cause more and smaller steps, which cost more. */
const pollEveryMs = 1_000
/** Events per step in normal operation. A step takes about 10 ms. */
const liveBatchSize = 1_000
/** Pause while a replica with newer rules advances the table, before its progress is read again. */
const pauseForOthers = "100 millis"
/** Pause after a failed background iteration. */
const pauseAfterFailure = "5 seconds"

/**
 * Progress of a projection. `lag` is the number of events that the projection has not applied yet. `stalled_ms` is the time without
 * progress; 0 if `lag` is 0. `outdated` is true if the table was filled by an older version of the rules than this program has.
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

/** Creates a projection that writes its rows with the given connection to the database. */
export type ProjectionDefinition = Effect.Effect<Projection, never, SqlClient.SqlClient>

const make = Effect.fnUntraced(function* (definitions: ReadonlyArray<ProjectionDefinition>) {
  const projections = yield* Effect.all(definitions)
  const access = yield* makeAccess
  const step = yield* makeStep
  yield* access.register(projections).pipe(QueryPolicy.withRetry("10 seconds"))

  /** Advances a projection from `position` to `head`. `access.look` has read both numbers. */
  const moveTo = Effect.fnUntraced(function* (
    projection: Projection,
    { head, position }: typeof PlaceRow.Type,
    pace: Pacer.Pacer
  ) {
    let now = position
    while (now < head) {
      yield* pace.wait(now - position, head - position)
      const { position: reached } = yield* step(projection, pace.batchSize)
      if (reached === now) yield* Effect.sleep(pauseForOthers)
      now = reached
    }
  })

  /** Advances a projection until its table has all events that were appended before the call. */
  const catchUp = (projection: Projection) =>
    Effect.flatMap(access.look(projection.name), (progress) => moveTo(projection, progress, Pacer.atOnce(maxStep)))

  /**
   * Advances a projection in the background. Does nothing if a replica has just advanced the projection and few events are new:
   * otherwise more replicas would cause more and smaller steps.
   */
  const follow = Effect.fnUntraced(function* (projection: Projection) {
    const progress = yield* access.look(projection.name)
    const { head, movedAgoMs, position } = progress
    // The time is negative if the clock of the database was set back.
    const lately = movedAgoMs >= 0 && movedAgoMs < pollEveryMs / 2
    if (lately && head - position < maxStep) return
    const isBacklog = head - position > Pacer.backlog
    yield* moveTo(projection, progress, isBacklog ? Pacer.atOnce(maxStep) : yield* Pacer.evenly(liveBatchSize))
  })

  const joins = new Map<string, (_: undefined) => Effect.Effect<void, StoreUnavailable>>()
  for (const projection of projections) {
    // All readers that arrive while an iteration for readers runs share the next such iteration.
    const join = yield* GroupCommit.make({
      run: (waiting: ReadonlyArray<undefined>) =>
        Effect.as(
          forReaders(catchUp(projection)),
          waiting.map(() => Exit.void)
        ),
      maxBatch: Infinity
    })
    joins.set(projection.name, join)
    // A gap in the log is a defect: the next iteration finds it again.
    yield* Worker.loop(
      `The update of the projection ${projection.name}`,
      Effect.catchTag(follow(projection), "LogGap", Effect.die),
      {
        schedule: Schedule.fixed(pollEveryMs),
        afterFailure: pauseAfterFailure
      }
    )
  }

  return {
    /** Waits until the table has all events that were appended before the call, at most 3 seconds. Fails with StoreUnavailable. */
    upToDate: Effect.fn("Projections.upToDate")(
      (name: string) =>
        joins.get(name)?.(undefined) ??
        Effect.die(`Projections.upToDate was called for the unknown projection ${name} (a defect)`)
    ),
    /** The progress of each projection. */
    list: access.list.pipe(QueryPolicy.withRetry(retryFor))
  }
})

/**
 * Sets a timeout for an iteration that applies new events while a reader waits for it. Fails at once if the log has a gap, because a
 * retry cannot close it.
 */
const forReaders = (iteration: Effect.Effect<void, SqlError | LogGap>): Effect.Effect<void, StoreUnavailable> =>
  iteration.pipe(
    Effect.catchTag("LogGap", (gap) => Effect.succeed(gap)),
    QueryPolicy.withRetry(retryFor),
    Effect.timeoutOrElse({ duration: retryFor, orElse: () => Effect.fail(new StoreUnavailable({})) }),
    Effect.flatMap((gap) => (gap === undefined ? Effect.void : Effect.fail(new StoreUnavailable({ cause: gap }))))
  )

/** The position of a projection, the head of the log, and the time since the projection last advanced. */
const PlaceRow = Schema.Struct({
  name: Schema.String,
  version: Schema.Int,
  position: Int8,
  head: Int8,
  movedAgoMs: Int8
})

const progressColumns = `p.name, p.version, p.position, l.next_position AS head,
  (extract(epoch FROM clock_timestamp() - p.moved_at) * 1000)::bigint AS "movedAgoMs"`

/** Creates the queries that read and initialise the positions of projections. */
const makeAccess = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const tables = yield* TableProjections
  // A projection does not advance while the log has no new events. Therefore `stalledMs` counts at the earliest from the time of the
  // first event that is not applied yet.
  const findProgress = SqlSchema.findAll({
    Request: Schema.Void,
    Result: Schema.Struct({ ...PlaceRow.fields, position: Schema.NullOr(Int8), stalledMs: Int8 }),
    execute: () => sql`SELECT ${sql.literal(progressColumns)},
        (extract(epoch FROM clock_timestamp() - greatest(p.moved_at, e.recorded_at)) * 1000)::bigint AS "stalledMs"
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
    look: (name: string) => Effect.catchTag(findPlace(name), ["SchemaError", "NoSuchElementError"], Effect.die),
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
        tables.map(({ kind, name, version: newest }): ProjectionState => {
          const progress = rows.find((one) => one.name === name)
          // An inline projection is always at the head of the log.
          const position = progress?.position ?? progress?.head ?? 0
          const lag = (progress?.head ?? 0) - position
          // The time is negative if the clock of the database was set back.
          const stalled_ms = lag > 0 ? Math.max(0, progress?.stalledMs ?? 0) : 0
          const version = progress?.version ?? 0
          return { name, kind, version, position, lag, stalled_ms, outdated: version < newest }
        })
      )
    )
  }
})

/** Reads the progress of each projection without advancing it. */
export const list = Effect.flatMap(makeAccess, (access) => access.list.pipe(QueryPolicy.withRetry(retryFor)))

export class Projections extends Context.Service<Projections, Effect.Success<ReturnType<typeof make>>>()(
  "vatproof/events/log/projections/Projections"
) {
  static readonly layer = (definitions: ReadonlyArray<ProjectionDefinition>) => Layer.effect(Projections, make(definitions))
}
