/**
 * All read models that follow the log. Whichever replica comes first moves them: the background does so about once a second, and a reader
 * that must see what was just written does so itself instead of waiting for it.
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
const patience = "3 seconds"
/** How far the views of auditors may be behind; whoever cannot wait moves the table at once. Fewer, larger steps cost less. */
const pollEveryMs = 1_000
/** Events of one step beside callers, some 10 ms of it. */
const pieceBesideCallers = 1_000
/** Before it is looked again whether somebody with newer rules has moved a table that is theirs. */
const pauseForOthers = "100 millis"
/** After a turn of the background that failed. */
const pauseAfterFailure = "5 seconds"
const maxWaiting = 20_000

/**
 * How far a projection is. `lag` counts the events it has not seen, and `stalled_ms` is how long it has not moved although there are some;
 * an `outdated` one follows older rules than this program's.
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

  /** Steps as far as the head stood when it was looked for. */
  const moveTo = Effect.fnUntraced(function* (projection: Projection, { head, position }: Place, pace: Pacer.Pacer) {
    let now = position
    while (now < head) {
      yield* pace.wait(now - position, head - position)
      const { position: reached } = yield* step(projection, pace.piece)
      if (reached === now) yield* Effect.sleep(pauseForOthers)
      now = reached
    }
  })

  /** What was appended before the call is in the table then. */
  const catchUp = (projection: Projection) =>
    Effect.flatMap(access.look(projection.name), (place) => moveTo(projection, place, Pacer.atOnce(maxStep)))

  /** In the background it is enough that somebody did so lately: more replicas must not mean more and smaller steps. */
  const follow = Effect.fnUntraced(function* (projection: Projection) {
    const place = yield* access.look(projection.name)
    const { head, movedAgoMs, position } = place
    // A clock that was set back must not look as if somebody had just been there.
    const lately = movedAgoMs >= 0 && movedAgoMs < pollEveryMs / 2
    if (lately && head - position < maxStep) return
    const isBacklog = head - position > Pacer.backlog
    yield* moveTo(projection, place, isBacklog ? Pacer.atOnce(maxStep) : yield* Pacer.evenly(pieceBesideCallers))
  })

  const joins = new Map<string, (_: undefined) => Effect.Effect<void, StoreUnavailable>>()
  for (const projection of projections) {
    // Readers that come while one turn is under way share the next one.
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
    /** When this succeeds, everything that was appended before the call is in the table. Bounded: 3 seconds. */
    upToDate: Effect.fn("Projections.upToDate")(
      (name: string) => joins.get(name)?.(undefined) ?? Effect.die(`There is no projection ${name}`)
    ),
    /** Where each of them is. */
    list: access.list.pipe(QueryPolicy.withRetry(patience))
  }
})

/** A gap is no reason to repeat anything: it stays until an operator has looked at it. */
const forReaders = (turn: Effect.Effect<void, SqlError | LogGap>): Effect.Effect<void, StoreUnavailable> =>
  turn.pipe(
    Effect.catchTag("LogGap", (gap) => Effect.succeed(gap)),
    QueryPolicy.withRetry(patience),
    Effect.timeoutOrElse({ duration: patience, orElse: () => Effect.fail(new StoreUnavailable({})) }),
    Effect.flatMap((gap) => (gap === undefined ? Effect.void : Effect.fail(new StoreUnavailable({ cause: gap }))))
  )

/** Never ends. A turn that fails is logged and repeated after a pause. */
const inBackground = (projection: Projection, turn: Effect.Effect<void, SqlError | LogGap>) =>
  turn.pipe(
    Effect.catchTags({
      LogGap: (gap) => Effect.andThen(Effect.logError(gap.message), Effect.sleep(pauseAfterFailure)),
      SqlError: (error) =>
        Effect.logWarning(`The projection ${projection.name} could not be moved; it is tried again`, error).pipe(
          Effect.andThen(Effect.sleep(pauseAfterFailure))
        )
    }),
    logDefects(`The projection ${projection.name} stumbled; it is tried again`, pauseAfterFailure),
    Effect.repeat(Schedule.fixed(pollEveryMs))
  )

/** How far a projection is, how far the log, and when it was moved last. */
interface Place {
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

const placeColumns = `p.name, p.version, p.position, l.next_position AS head,
  (extract(epoch FROM clock_timestamp() - p.moved_at) * 1000)::bigint AS moved_ago_ms`

/** Reading and starting the checkpoints. */
const makeAccess = Effect.map(SqlClient.SqlClient, (sql) => {
  // What there is to apply may be younger than the last move.
  const findPlaces = SqlSchema.findAll({
    Request: Schema.Void,
    Result: Schema.Struct({ ...PlaceRow.fields, position: Schema.NullOr(Schema.BigInt), stalled_ms: Schema.BigInt }),
    execute: () => sql`SELECT ${sql.literal(placeColumns)},
        (extract(epoch FROM clock_timestamp() - greatest(p.moved_at, e.recorded_at)) * 1000)::bigint AS stalled_ms
      FROM vatproof.projections p JOIN vatproof.logs l ON l.log_id = p.log_id
      LEFT JOIN vatproof.events e ON e.log_id = p.log_id AND e.position = p.position WHERE p.log_id = ${logId}`
  })

  const findPlace = SqlSchema.findOne({
    Request: Schema.String,
    Result: PlaceRow,
    execute: (name) => sql`SELECT ${sql.literal(placeColumns)}
      FROM vatproof.projections p JOIN vatproof.logs l ON l.log_id = p.log_id WHERE p.log_id = ${logId} AND p.name = ${name}`
  })

  return {
    look: (name: string) =>
      findPlace(name).pipe(
        Effect.map((place): Place => ({
          position: Number(place.position),
          head: Number(place.head),
          movedAgoMs: Number(place.moved_ago_ms)
        })),
        Effect.catchTag(["SchemaError", "NoSuchElementError"], Effect.die)
      ),
    /** A projection that is new here starts at position 0. */
    register: (projections: ReadonlyArray<Projection>) =>
      Effect.forEach(
        projections,
        ({ name, version }) => sql`INSERT INTO vatproof.projections (log_id, name, version, position)
          VALUES (${logId}, ${name}, ${version}, 0) ON CONFLICT (log_id, name) DO NOTHING`,
        { discard: true }
      ),
    list: Effect.suspend(() =>
      Effect.map(findPlaces(undefined), (places) =>
        tableProjections.map(({ kind, name, version: newest }): ProjectionState => {
          const place = places.find((one) => one.name === name)
          // What moves with the append is where the log is.
          const position = Number(place?.position ?? place?.head ?? 0)
          const lag = Number(place?.head ?? 0) - position
          // A clock that was set back says nothing of how long ago that was.
          const stalled_ms = lag > 0 ? Math.max(0, Number(place?.stalled_ms ?? 0)) : 0
          const version = place?.version ?? 0
          return { name, kind, version, position, lag, stalled_ms, outdated: version < newest }
        })
      )
    )
  }
})

/** Where projections are, without moving any. */
export const list = Effect.flatMap(makeAccess, (access) => access.list.pipe(QueryPolicy.withRetry(patience)))

export class Projections extends Context.Service<Projections, Effect.Success<ReturnType<typeof make>>>()(
  "vatproof/events/projections/Projections"
) {
  static readonly layer = (definitions: ReadonlyArray<ProjectionDefinition>) => Layer.effect(Projections, make(definitions))
}
