/** The append-only log: batched append, and reading by stream and position. */
import { type Array as Arr, Context, DateTime, Effect, Layer, Result, Schema } from "effect"
import { Hex } from "effect/encoding"
import { SqlClient, SqlSchema } from "effect/sql"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { Randomness } from "#domain/Randomness.ts"
import { RequestContext } from "#domain/RequestContext.ts"
import { StoreUnavailable } from "#domain/StoreUnavailable.ts"
import * as Append from "#events/Append.ts"
import * as Batcher from "#events/Batcher.ts"
import * as CanonicalJson from "#events/log/CanonicalJson.ts"
import * as StoreAccess from "#events/StoreAccess.ts"
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

  /** The identical batch is sent again while the database is away: what was stored already comes back as a duplicate. */
  const send = (batch: ReadonlyArray<Append.Prepared>) => exitsOf(batch).pipe(StoreAccess.patiently(patience))

  const sendAlone = (one: Append.Prepared) =>
    Effect.exit(Effect.flatMap(send([one]), ([exit]) => exit ?? Effect.die("vatproof.append gave no outcome for a command")))

  /** One command that the database cannot take must not take the others with it. */
  const sendAll = (batch: Arr.NonEmptyReadonlyArray<Append.Prepared>) =>
    send(batch).pipe(Effect.catchDefect((defect) => (isSqlError(defect) ? Effect.forEach(batch, sendAlone) : Effect.die(defect))))

  const onFull = (): Append.AppendError => new StoreUnavailable({})
  const join = yield* Batcher.make({ run: sendAll, maxBatch, maxWaiting, onFull })

  const append = Effect.fn("EventStore.append")(function* (command: Append.AppendCommand) {
    const prepared = yield* prepare(command, yield* DateTime.now)
    const appended = yield* Effect.repeat(join(prepared), { until: (outcome) => outcome !== Append.sendAgain, times: maxTurns })
    if (appended === Append.sendAgain) return yield* new Append.StreamMoved({ stream: command.stream, actual: -1 })
    return appended
  })

  /**
   * Appends in a transaction of its own, together with what `alongside` writes; it gets the time the events carry. It runs first, so
   * that the log's lock is held for one round trip only. A failure of either undoes both.
   */
  const appendWith = <A, E>(
    commands: Arr.NonEmptyReadonlyArray<Append.AppendCommand>,
    alongside: (occurredAt: DateTime.Utc) => Effect.Effect<A, E | SqlError>
  ) =>
    Effect.gen(function* () {
      const occurredAt = yield* DateTime.now
      const prepared = yield* Effect.forEach(commands, (command) => prepare(command, occurredAt))
      return yield* sql.withTransaction(
        Effect.gen(function* () {
          const result = yield* alongside(occurredAt)
          yield* Effect.forEach(yield* exitsOf(prepared), (exit) => exit)
          return result
        })
      )
    }).pipe(Effect.catchTag("SchemaError", Effect.die))

  return { append, appendWith, ...(yield* makeReads) }
})

/** Fixes a command's ids, times and bytes. */
const makePrepare = Effect.map(Randomness, (random) =>
  Effect.fnUntraced(function* (command: Append.AppendCommand, occurredAt: DateTime.Utc) {
    const { correlationId, requestId, traceId } = yield* RequestContext
    const metadata = yield* canonical({ request_id: requestId })
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
          index === command.events.length - 1 ? (command.lists?.join("\n") ?? null) : null
        ]
      })
    )
    return { command, rows } satisfies Append.Prepared
  })
)

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
