/** The append-only log: batched append, and reading by stream and position. */
import { type Array as Arr, Context, DateTime, Effect, Layer, Result, Schema } from "effect"
import { Hex } from "effect/encoding"
import { SqlClient, SqlSchema } from "effect/sql"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { Randomness } from "#domain/Randomness.ts"
import { RequestContext } from "#domain/RequestContext.ts"
import { StoreUnavailable } from "#domain/StoreUnavailable.ts"
import { TraceLinks } from "#domain/TraceLinks.ts"
import * as Append from "#events/Append.ts"
import * as Batcher from "#events/Batcher.ts"
import * as CanonicalJson from "#events/log/CanonicalJson.ts"
import * as StoreAccess from "#events/StoreAccess.ts"
import * as StoreHealth from "#events/StoreHealth.ts"
import * as StoreMetrics from "#events/StoreMetrics.ts"
import { StoredEvent } from "#events/StoredEvent.ts"

/** Bounds: callers of one batch, callers that may wait, and how long a batch is repeated while the database is away. */
const maxBatch = 500
const maxWaiting = 20_000
const patience = "5 seconds"
/** Batches that a command may stand aside in for another one of its stream. */
const maxTurns = 20

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const prepare = yield* makePrepare
  const exitsOf = yield* Append.make
  yield* StoreHealth.watch
  const traceLinks = yield* TraceLinks

  /** The identical batch is sent again while the database is away: what was stored already comes back as a duplicate. */
  const send = (batch: ReadonlyArray<Append.Prepared>) =>
    StoreMetrics.timed(StoreMetrics.appendDuration, exitsOf(batch).pipe(StoreAccess.patiently(patience)))

  const sendAlone = (one: Append.Prepared) =>
    Effect.exit(Effect.flatMap(send([one]), ([exit]) => exit ?? Effect.die("vatproof.append gave no outcome for a command")))

  /** One command that the database cannot take must not take the others with it. */
  const sendAll = (batch: Arr.NonEmptyReadonlyArray<Append.Prepared>) =>
    send(batch).pipe(Effect.catchDefect((defect) => (isSqlError(defect) ? Effect.forEach(batch, sendAlone) : Effect.die(defect))))

  const onFull = (): Append.PresumingError => new StoreUnavailable({})
  const measures = { size: StoreMetrics.appendBatchSize, wait: StoreMetrics.appendWait }
  const join = yield* Batcher.make({ run: sendAll, maxBatch, maxWaiting, onFull, measures })

  const joinWith = Effect.fnUntraced(function* (command: Append.Prepared["command"]) {
    const prepared = yield* prepare(command, yield* DateTime.now)
    const appended = yield* Effect.repeat(join(prepared), { until: (outcome) => outcome !== Append.sendAgain, times: maxTurns })
    if (appended === Append.sendAgain) return yield* new Append.StreamMoved({ stream: command.stream, actual: -1 })
    yield* traceLinks.note(appended.position)
    return appended
  })

  const append = Effect.fn("EventStore.append")((command: Append.AppendCommand) => nothingPresumed(joinWith(command)))

  /**
   * Appends in a transaction of its own, together with what `alongside` writes; it gets the time the events carry, which is now if it
   * is not given. It runs first, so that the log's lock is held for one round trip only. A failure of either undoes both.
   */
  const appendWith = <A, E>(
    commands: Arr.NonEmptyReadonlyArray<Append.AppendCommand>,
    alongside: (occurredAt: DateTime.Utc) => Effect.Effect<A, E | SqlError>,
    happenedAt?: DateTime.Utc
  ) =>
    Effect.gen(function* () {
      const occurredAt = happenedAt ?? (yield* DateTime.now)
      const prepared = yield* Effect.forEach(commands, (command) => prepare(command, occurredAt))
      return yield* StoreAccess.once(
        sql.withTransaction(
          Effect.gen(function* () {
            const result = yield* alongside(occurredAt)
            yield* nothingPresumed(Effect.forEach(yield* exitsOf(prepared), (exit) => exit))
            return result
          })
        )
      )
    }).pipe(Effect.catchTag("SchemaError", Effect.die))

  /** Appends unless what the command presumes has moved, or its minute is full. */
  const appendPresuming = Effect.fn("EventStore.appendPresuming")((command: Append.PresumingCommand) => joinWith(command))

  return { append, appendPresuming, appendWith, ...(yield* makeReads) }
})

/** A command without presumptions cannot fail by them. */
const nothingPresumed = <A, E, R>(appended: Effect.Effect<A, E | Append.PresumingError, R>) =>
  Effect.catchTag(appended, ["PresumptionMoved", "MinuteFull"], Effect.die)

/** Fixes a command's ids, times and bytes. */
const makePrepare = Effect.map(Randomness, (random) =>
  Effect.fnUntraced(function* (command: Append.Prepared["command"], occurredAt: DateTime.Utc) {
    const { correlationId, requestId, traceId } = yield* RequestContext
    const metadata = yield* canonical({ request_id: requestId })
    const presumed = presumptionCells(command.presumed)
    const rows = yield* Effect.forEach(
      command.events,
      Effect.fnUntraced(function* (event, index) {
        return [
          command.stream,
          command.expectedVersion === null ? null : BigInt(command.expectedVersion),
          yield* random.uuidV7,
          event.type,
          event.schemaVersion,
          DateTime.toDateUtc(occurredAt),
          correlationId,
          null,
          traceId === null ? null : Result.getOrThrow(Hex.decode(traceId)),
          yield* canonical(event.data),
          metadata,
          command.charge?.meter ?? null,
          index === 0 ? (command.charge?.units ?? 0) : 0,
          command.charge === null ? null : BigInt(command.charge.cap),
          index === command.events.length - 1 ? command.latestOf : null,
          index === command.events.length - 1 ? (command.lists?.join("\n") ?? null) : null,
          ...presumed
        ]
      })
    )
    return { command, rows } satisfies Append.Prepared
  })
)

const presumptionCells = (presumed: Append.Presumption | undefined) => [
  presumed === undefined || presumed.epoch === null ? null : BigInt(presumed.epoch),
  presumed?.newest?.key ?? null,
  presumed?.newest ? BigInt(presumed.newest.position) : null,
  presumed?.minute?.bucket ?? null,
  presumed?.minute?.limit ?? null
]

const makeReads = Effect.map(SqlClient.SqlClient, (sql) => {
  const findEvents = SqlSchema.findAll({
    Request: Schema.Struct({ from: Schema.Int, limit: Schema.Int }),
    Result: StoredEvent,
    execute: ({ from, limit }) =>
      sql`SELECT ${sql.literal(StoredEvent.columns)} FROM vatproof.events
        WHERE log_id = ${Append.logId} AND position >= ${from} ORDER BY position LIMIT ${limit}`
  })

  const findStream = SqlSchema.findAll({
    Request: Schema.Struct({ stream: Schema.String, after: Schema.Int, limit: Schema.Int }),
    Result: StoredEvent,
    execute: ({ after, limit, stream }) =>
      sql`SELECT ${sql.literal(StoredEvent.columns)} FROM vatproof.events
        WHERE log_id = ${Append.logId} AND stream_id = ${stream} AND version > ${after} ORDER BY version LIMIT ${limit}`
  })

  return {
    /** Up to `limit` events from a position on, in their order. */
    read: Effect.fn("EventStore.read")((from: number, limit: number) =>
      findEvents({ from, limit }).pipe(StoreAccess.patiently(patience))
    ),
    /** Up to `limit` events of a stream after a version, in their order. */
    readStream: Effect.fn("EventStore.readStream")((stream: string, after: number, limit: number) =>
      findStream({ stream, after, limit }).pipe(StoreAccess.patiently(patience))
    )
  }
})

/** Event data is made of our own schemas: what has no canonical form is a defect of ours. */
const canonical = (value: Schema.Json) =>
  Effect.fromResult(CanonicalJson.encode(value)).pipe(Effect.catchTag("NotCanonicalJson", Effect.die))

export class EventStore extends Context.Service<EventStore, Effect.Success<typeof make>>()("vatproof/events/EventStore") {
  static readonly layer = Layer.effect(EventStore, make)
}
