/** Appends events to the log by group commit, and reads them by position or by stream. */
import { type Array as Arr, Clock, Context, DateTime, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { DomainEvent, EventIdentity } from "#domain/log/DomainEvent.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { noRequest, RequestContext, type ServedRequest } from "#domain/kernel/RequestContext.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import { TraceLinks } from "#domain/telemetry/TraceLinks.ts"
import { whenSampled } from "#domain/telemetry/WhenSampled.ts"
import * as Append from "#events/log/store/Append.ts"
import * as AppendCommand from "#events/log/store/AppendCommand.ts"
import * as GroupCommit from "#events/log/store/GroupCommit.ts"
import * as CanonicalJson from "#events/log/merkle/CanonicalJson.ts"
import * as PersonalDocument from "#events/log/store/PersonalDocument.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import * as DatabaseBreaker from "#events/log/database/DatabaseBreaker.ts"
import * as StoreMetrics from "#events/log/database/StoreMetrics.ts"
import { StoredEvent } from "#events/log/store/StoredEvent.ts"
import { bytesOfTraceId } from "#events/log/store/TraceParent.ts"

/** Maximum number of commands in one group commit (a batch). */
const maxBatch = 256
/** Time for which a group commit is retried during an outage. */
const retryFor = "5 seconds"

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const clock = yield* Clock.Clock
  const prepare = yield* makePrepare
  const appendBatch = yield* Append.make
  const withSpan = yield* makeWithSpan
  yield* DatabaseBreaker.watch

  /**
   * Sends the commands of one group commit to the database. Retries the identical batch during an outage, and once if the database
   * reports that an event with the same id is stored already. A command that an earlier attempt stored is then returned as a
   * duplicate.
   */
  const send = (batch: Arr.NonEmptyReadonlyArray<AppendCommand.Prepared>) => {
    let isResent = false
    const attempt = Effect.suspend(() => {
      const result = appendBatch(batch, isResent)
      isResent = true
      return result
    })
    const sent = Effect.retry(attempt, { times: 1, while: isStoredAlready })
    return StoreMetrics.timed(StoreMetrics.appendDuration, sent.pipe(QueryPolicy.withRetryForMany(retryFor)))
  }

  const sendAlone = (one: AppendCommand.Prepared) =>
    Effect.exit(
      Effect.flatMap(
        send([one]),
        ([exit]) => exit ?? Effect.die("The database function vatproof.append returned no outcome for a command")
      )
    )

  /**
   * Sends the commands of one group commit. If the database rejects the batch with an error, sends each command alone, so that only
   * the faulty command fails.
   */
  const sendAll = (batch: Arr.NonEmptyReadonlyArray<AppendCommand.Prepared>) =>
    send(batch).pipe(Effect.catchDefect((defect) => (isSqlError(defect) ? Effect.forEach(batch, sendAlone) : Effect.die(defect))))

  const measures = { size: StoreMetrics.appendBatchSize, wait: StoreMetrics.appendWait }
  const join = yield* GroupCommit.make({ run: sendAll, maxBatch, measures, procedure: "append" })

  /**
   * Appends the events of a command, or none of them if a condition of the command fails. All waiting commands share one round trip.
   */
  const append = (command: AppendCommand.AppendCommand) =>
    withSpan((served) => join(prepare(command, clock.currentTimeMillisUnsafe(), served, requestOf(served))))

  /** Appends an event without conditions or charge. An event with an `identity` is stored once, even if it is appended again. */
  const appendFact = (
    stream: string,
    event: DomainEvent,
    identity?: EventIdentity
  ): Effect.Effect<AppendCommand.Appended, StoreUnavailable> => {
    const identities = identity === undefined ? undefined : [identity]
    const mayBeStored = identity !== undefined
    const command = { stream, expectedVersion: null, events: [event] as const, charge: null, identities, mayBeStored }
    const appended = withSpan((served) => join(prepare(command, clock.currentTimeMillisUnsafe(), served, originOf(served))))
    return Effect.catchTag(appended, refusals, Effect.die)
  }

  /**
   * Appends commands that charge no meter, in the same transaction as the writes of `inSameTransaction`. The writes receive the time
   * of the events (`happenedAt`, by default now). The writes run first, so that the lock of the log is held for one round trip only.
   */
  const appendWith = <A, E>(
    commands: Arr.NonEmptyReadonlyArray<AppendCommand.AppendCommand>,
    inSameTransaction: (occurredAt: DateTime.Utc) => Effect.Effect<A, E | SqlError>,
    happenedAt?: DateTime.Utc
  ) =>
    Effect.gen(function* () {
      const occurredAt = happenedAt ?? (yield* DateTime.now)
      const served = yield* RequestContext
      const prepared = commands.map((command) => prepare(command, DateTime.toEpochMillis(occurredAt), served, originOf(served)))
      return yield* QueryPolicy.withoutRetry(
        sql.withTransaction(
          Effect.gen(function* () {
            const result = yield* inSameTransaction(occurredAt)
            const exits = yield* appendBatch(prepared, false)
            yield* Effect.forEach(exits, (exit) => exit).pipe(Effect.catchTag(uncharged, Effect.die))
            return result
          })
        )
      )
    })

  return { append, appendFact, appendWith, ...(yield* makeReads) }
})

const isStoredAlready = ({ reason }: SqlError) => reason._tag === "UniqueViolation"

/** Errors that only a command with a charge, a rate window or a precondition can cause. */
const uncharged = ["QuotaReached", "RateLimitReached", "PreconditionFailed"] as const
/** Errors that only a command with a charge, a rate window, a precondition or an expected version can cause. */
const refusals = [...uncharged, "VersionConflict"] as const

/**
 * Wraps an append in a span if the trace of its request is sampled. The spans of later work on the appended event link to this span
 * (`TraceLinks`).
 */
const makeWithSpan = Effect.map(TraceLinks, (traceLinks) => {
  const inSpan = whenSampled("EventStore.append")
  const noted = <E>(appended: Effect.Effect<AppendCommand.Appended, E>) =>
    Effect.tap(appended, ({ position }) =>
      Effect.map(Effect.currentSpan, (span) => traceLinks.note(position, span)).pipe(Effect.ignore)
    )

  return <E>(
    append: (served: ServedRequest) => Effect.Effect<AppendCommand.Appended, E>
  ): Effect.Effect<AppendCommand.Appended, E> =>
    Effect.withFiber((fiber) => {
      const appended = append(fiber.getRef(RequestContext))
      return fiber.cache.span?.sampled === true ? inSpan(noted(appended)) : appended
    })
})

/** Creates a function that assigns ids, times and bytes to the events of a command. */
const makePrepare = Effect.gen(function* () {
  const { uuidV7 } = yield* Crypto
  const seal = yield* PersonalDocument.makeSeal
  // Caches the text of an event object. Repeated validations with the same cached answer share one event object.
  const texts = new WeakMap<DomainEvent, string>()
  const textOf = (event: DomainEvent) => {
    const known = texts.get(event)
    if (known !== undefined) return known
    const text = CanonicalJson.encodeOwn(event.data)
    texts.set(event, text)
    return text
  }

  return (
    command: AppendCommand.AppendCommand,
    occurredAtMs: number,
    { correlationId, traceId }: ServedRequest,
    metadata: string
  ): AppendCommand.Prepared => {
    const { charge, events, expectedVersion, identities, minute, precondition, stream } = command
    const newest = precondition?.newest ?? null
    const epoch = precondition?.epoch ?? null
    const traceBytes = traceId === null ? null : bytesOfTraceId(traceId)
    const documents: Array<AppendCommand.DocumentRow> = []
    const timeOf = ({ occurredAt }: DomainEvent) => (occurredAt === undefined ? occurredAtMs : DateTime.toEpochMillis(occurredAt))
    const dataOf = (event: DomainEvent, index: number) => {
      if (event.personal === undefined) return textOf(event)
      const { data, document, retainUntilMs } = seal(event.data, event.personal, timeOf(event))
      documents.push({ event: index, document, retainUntilMs })
      return data
    }
    const rows = events.map((event, index): AppendCommand.EventRow => ({
      stream,
      eventId: identities?.[index]?.eventId ?? uuidV7(),
      type: event.type,
      schemaVersion: event.schemaVersion,
      occurredAtMs: timeOf(event),
      correlationId,
      causationId: identities?.[index]?.causationId ?? null,
      traceId: traceBytes,
      data: dataOf(event, index),
      metadata,
      meter: charge?.meter ?? null,
      units: index === 0 ? (charge?.units ?? 0) : 0,
      cap: charge === null ? null : BigInt(charge.cap),
      expected: expectedVersion === null ? null : BigInt(expectedVersion),
      epoch: epoch === null ? null : BigInt(epoch),
      answerKey: newest === null ? null : newest.key,
      answerPosition: newest === null ? null : BigInt(newest.asOf),
      minuteLimit: minute?.limit ?? null
    }))
    return { command, rows, documents }
  }
})

/**
 * Returns the metadata of a charged event: only the request id, or `-` if a replica answered a task. The metadata is short, because
 * most events are charged.
 */
const requestOf = ({ requestId }: ServedRequest) => `{"request_id":${CanonicalJson.encodeOwn(requestId)}}`

/**
 * Returns the metadata of an event that is not charged. It states the cause of the event: an operator's command (with operator and
 * reason), an API request, or a replica.
 */
const originOf = ({ correlationId, operator, requestId }: ServedRequest) => {
  if (operator !== undefined) return CanonicalJson.encodeOwn({ ...operator, request_id: requestId, source: "cli" })
  return CanonicalJson.encodeOwn({ request_id: requestId, source: correlationId === noRequest.correlationId ? "replica" : "api" })
}

/**
 * Creates the functions that read events. The statements select a range of positions or versions, which have no gaps, instead of using
 * LIMIT: with LIMIT the planner might read and sort all later rows first.
 */
const makeReads = Effect.map(SqlClient.SqlClient, (sql) => {
  const findEvents = SqlSchema.findAll({
    Request: Schema.Struct({ from: Schema.Int, limit: Schema.Int }),
    Result: StoredEvent,
    execute: ({ from, limit }) =>
      sql`SELECT ${sql.literal(StoredEvent.columns)} FROM vatproof.events
        WHERE log_id = ${AppendCommand.logId} AND position >= ${from} AND position < ${from}::bigint + ${limit} ORDER BY position`
  })

  const findStream = SqlSchema.findAll({
    Request: Schema.Struct({ stream: Schema.String, after: Schema.Int, limit: Schema.Int }),
    Result: StoredEvent,
    execute: ({ after, limit, stream }) =>
      sql`SELECT ${sql.literal(StoredEvent.columns)} FROM vatproof.events
        WHERE log_id = ${AppendCommand.logId} AND stream_id = ${stream} AND version > ${after} AND version <= ${after}::bigint + ${limit}
        ORDER BY version`
  })

  return {
    /** Returns up to `limit` events from position `from` (inclusive), in order. */
    read: Effect.fn("EventStore.read")((from: number, limit: number) =>
      findEvents({ from, limit }).pipe(QueryPolicy.withRetry(retryFor))
    ),
    /** Returns up to `limit` events of a stream whose versions are greater than `after`, in order. */
    readStream: Effect.fn("EventStore.readStream")((stream: string, after: number, limit: number) =>
      findStream({ stream, after, limit }).pipe(QueryPolicy.withRetry(retryFor))
    )
  }
})

export class EventStore extends Context.Service<EventStore, Effect.Success<typeof make>>()(
  "vatproof/events/log/store/EventStore"
) {
  static readonly layer = Layer.effect(EventStore, make)
}
