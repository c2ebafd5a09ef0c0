/** The append-only log: batched append, and reading by stream and position. */
import { type Array as Arr, Clock, Context, DateTime, Effect, type Exit, Layer, Metric, Result, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { DomainEvent } from "#domain/DomainEvent.ts"
import { Randomness } from "#domain/Randomness.ts"
import { RequestContext, type ServedRequest } from "#domain/RequestContext.ts"
import { StoreUnavailable } from "#domain/StoreUnavailable.ts"
import { TraceLinks } from "#domain/TraceLinks.ts"
import * as Append from "#events/Append.ts"
import * as AppendAll from "#events/AppendAll.ts"
import * as Batcher from "#events/Batcher.ts"
import * as CanonicalJson from "#events/log/CanonicalJson.ts"
import * as StoreAccess from "#events/StoreAccess.ts"
import * as StoreHealth from "#events/StoreHealth.ts"
import * as StoreMetrics from "#events/StoreMetrics.ts"
import { StoredEvent } from "#events/StoredEvent.ts"
import { bytesOfTraceId } from "#events/TraceParent.ts"

/** Bounds: callers of one batch, callers that may wait, and how long a batch is repeated while the database is away. */
const maxBatch = 256
const maxWaiting = 20_000
const patience = "5 seconds"

type Appending = Exit.Exit<Append.Appended, Append.PresumingError>

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const clock = yield* Clock.Clock
  const prepare = yield* makePrepare
  const exitsOf = yield* Append.make
  const allOf = yield* AppendAll.make
  yield* StoreHealth.watch
  const traceLinks = yield* TraceLinks

  const oneByOne = (batch: Arr.NonEmptyReadonlyArray<Append.Prepared>) =>
    Effect.tap(exitsOf(batch), () => Metric.update(StoreMetrics.decidedBatches, 1))

  /** As a whole first, if nothing is in the way. Not when it is sent again: what is stored already only vatproof.append can tell. */
  const asAWhole = (batch: Arr.NonEmptyReadonlyArray<Append.Prepared>) => {
    let isFirst = true
    return Effect.suspend(() => {
      if (!isFirst) return oneByOne(batch)
      isFirst = false
      return Effect.flatMap(allOf(batch), (exits) =>
        exits === null ? oneByOne(batch) : Effect.as(Metric.update(StoreMetrics.wholeBatches, 1), exits)
      )
    })
  }

  /** The identical batch is sent again while the database is away: what was stored already comes back as a duplicate. */
  const send = (attempt: ReturnType<typeof exitsOf>) =>
    StoreMetrics.timed(StoreMetrics.appendDuration, attempt.pipe(StoreAccess.patientlyForMany(patience)))

  const sendAlone = (one: Append.Prepared) =>
    Effect.exit(
      Effect.flatMap(send(exitsOf([one])), ([exit]) => exit ?? Effect.die("vatproof.append gave no outcome for a command"))
    )

  /** One command that the database cannot take must not take the others with it. */
  const sendAll = (batch: Arr.NonEmptyReadonlyArray<Append.Prepared>) =>
    send(asAWhole(batch)).pipe(
      Effect.catchDefect((defect) => (isSqlError(defect) ? Effect.forEach(batch, sendAlone) : Effect.die(defect)))
    )

  const onFull = (): Append.PresumingError => new StoreUnavailable({})
  const measures = { size: StoreMetrics.appendBatchSize, wait: StoreMetrics.appendWait }
  const join = yield* Batcher.makeUnsafe({ run: sendAll, maxBatch, maxWaiting, onFull, measures })

  /** Appends in plain code, unless what the command presumes has moved, or its minute is full: for what is done thousands of times a second. */
  const appendUnsafe = (command: Append.PreparableCommand, served: ServedRequest, done: (exit: Appending) => void) =>
    join(prepare(command, clock.currentTimeMillisUnsafe(), served), done)

  const joinWith = (command: Append.PreparableCommand) =>
    Effect.flatMap(RequestContext, (served) =>
      Effect.callback<Append.Appended, Append.PresumingError>((resume) => appendUnsafe(command, served, resume))
    ).pipe(Effect.tap(({ position }) => traceLinks.note(position)))

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
      const served = yield* RequestContext
      const prepared = commands.map((command) => prepare(command, DateTime.toEpochMillis(occurredAt), served))
      return yield* StoreAccess.once(
        sql.withTransaction(
          Effect.gen(function* () {
            const result = yield* alongside(occurredAt)
            yield* nothingPresumed(Effect.forEach(yield* exitsOf(prepared), (exit) => exit))
            return result
          })
        )
      )
    })

  /** Appends unless what the command presumes has moved, or its minute is full. */
  const appendPresuming = Effect.fn("EventStore.appendPresuming")((command: Append.PresumingCommand) => joinWith(command))

  return { append, appendPresuming, appendUnsafe, appendWith, ...(yield* makeReads) }
})

/** A command without presumptions cannot fail by them. */
const nothingPresumed = <A, E, R>(appended: Effect.Effect<A, E | Append.PresumingError, R>) =>
  Effect.catchTag(appended, ["PresumptionMoved", "MinuteFull"], Effect.die)

/** Fixes a command's ids, times and bytes. Plain code: what it cannot do is a defect. */
const makePrepare = Effect.map(Randomness, ({ uuidV7Unsafe }) => {
  // An event that is appended again and again is one object: it is written once.
  const texts = new WeakMap<DomainEvent, string>()
  const textOf = (event: DomainEvent) => {
    const known = texts.get(event)
    if (known !== undefined) return known
    const text = canonical(event.data)
    texts.set(event, text)
    return text
  }

  return (command: Append.PreparableCommand, occurredAtMs: number, { correlationId, requestId, traceId }: ServedRequest) => {
    const { charge, events, expectedVersion, latestOf, lists, presumed, stream } = command
    const metadata = `{"request_id":${canonical(requestId)}}`
    const traceBytes = traceId === null ? null : bytesOfTraceId(traceId)
    const last = events.length - 1
    const rows = events.map((event, index): Append.Cells => ({
      stream,
      expected: expectedVersion === null ? null : BigInt(expectedVersion),
      eventId: uuidV7Unsafe(),
      type: event.type,
      schemaVersion: event.schemaVersion,
      occurredAt: occurredAtMs,
      correlationId,
      causationId: null,
      traceId: traceBytes,
      data: textOf(event),
      metadata,
      meter: charge?.meter ?? null,
      units: index === 0 ? (charge?.units ?? 0) : 0,
      cap: charge === null ? null : BigInt(charge.cap),
      latest: index === last ? latestOf : null,
      lists: index === last ? (lists?.join("\n") ?? null) : null,
      epoch: presumed === undefined || presumed.epoch === null ? null : BigInt(presumed.epoch),
      answerKey: presumed?.newest?.key ?? null,
      answerPosition: presumed?.newest ? BigInt(presumed.newest.position) : null,
      bucket: presumed?.minute?.bucket ?? null,
      bucketLimit: presumed?.minute?.limit ?? null
    }))
    return { command, rows } satisfies Append.Prepared
  }
})

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
const canonical = (value: Schema.Json) => Result.getOrThrow(CanonicalJson.encode(value))

export class EventStore extends Context.Service<EventStore, Effect.Success<typeof make>>()("vatproof/events/EventStore") {
  static readonly layer = Layer.effect(EventStore, make)
}
