/**
 * The timeouts and retries of all queries. During an outage a query is retried for a bounded time and then fails with
 * `StoreUnavailable`. While the circuit breaker of the database is open, a query fails at once.
 */
import { Cause, Clock, Duration, Effect, Exit, Fiber, Metric, MutableRef, Option, Predicate, Schedule, type Schema } from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { DatabaseFull } from "#domain/kernel/DatabaseFull.ts"
import { monotonicMs } from "#domain/concurrency/MonotonicTime.ts"
import { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import { DatabaseBreaker } from "#events/log/database/DatabaseBreaker.ts"
import * as StoreMetrics from "#events/log/database/StoreMetrics.ts"

/**
 * Codes of transient errors that the driver does not count as transient: a read-only server, such as a standby before its promotion
 * (25006), a transaction that was idle for too long (25P03), and an I/O error (58030).
 */
const transientCodes: ReadonlySet<string> = new Set(["25006", "25P03", "58030"])

/**
 * Returns true if the same statement may succeed a moment later on another connection: after a lost connection, an error of
 * PostgreSQL's classes 57P (shutdown, start) and 53 (no disk space, memory or connections), or one of `transientCodes`.
 */
export const isTransient = (error: SqlError): boolean => {
  if (error.reason.isRetryable) return true
  const code = codeOf(error)
  return code.startsWith("57P") || code.startsWith("53") || transientCodes.has(code)
}

const diskFull = "53100"

/** Returns true for a transient error, except a full disk and a standby (25006), which rarely recover while a request waits. */
const isWorthRepeating = (error: SqlError) => isTransient(error) && ![diskFull, "25006"].includes(codeOf(error))

/** Returns true if an error means that the database is unavailable; false if the database only rejected this statement. */
const meansAway = (error: SqlError) => {
  const code = codeOf(error)
  return error.reason._tag === "ConnectionError" || code.startsWith("57P") || code.startsWith("08") || code === "53300"
}

const codeOf = ({ reason: { cause } }: SqlError): string =>
  Predicate.hasProperty(cause, "code") && Predicate.isString(cause.code) ? cause.code : ""

/** Pauses between retries: 25 ms, doubled up to 400 ms. The jitter keeps replicas from retrying at the same time. */
const firstBackoff = "25 millis"
const backoff = Schedule.min([Schedule.exponential("50 millis"), Schedule.spaced("400 millis")]).pipe(Schedule.jittered)

/** Minimum timeout of a query. A server that was stopped hard sends no error, so its queries hang. */
const hungAfter = Duration.seconds(5)

/** Errors of a query that is defined with `SqlSchema`. */
export type QueryFailure = SqlError | Schema.SchemaError | Cause.NoSuchElementError

/**
 * Runs a query, and retries it during an outage for at most `retryFor`. Fails with `StoreUnavailable` if the outage lasts longer, or
 * if the query exceeds its timeout. The timeout is the longest of 5 s, `retryFor` and `mayTake`, the time that a slow query may
 * take. An error that is not transient is a defect.
 */
export const withRetry =
  (retryFor: Duration.Input, mayTake: Duration.Input = Duration.zero) =>
  <A, R>(query: Effect.Effect<A, QueryFailure, R>): Effect.Effect<A, StoreUnavailable, R> =>
    ifRoom(withRetryForMany(retryFor, mayTake)(query))

/**
 * Like `withRetry`, but for a query that serves many waiting callers at once. The number of such queries in flight is small and
 * therefore not limited.
 */
export const withRetryForMany =
  (retryFor: Duration.Input, mayTake: Duration.Input = Duration.zero) =>
  <A, R>(query: Effect.Effect<A, QueryFailure, R>): Effect.Effect<A, StoreUnavailable, R> =>
    watched(limitOf(retryFor, mayTake), query, (attempt, health) => {
      const mayRepeat = (error: QueryFailure): error is SqlError =>
        isSqlError(error) && isWorthRepeating(error) && !health.isOpen()
      // The schedule is created for failed queries only, because creating it costs more than most queries.
      return Effect.catchIf(attempt, mayRepeat, () =>
        Effect.delay(
          Effect.retry(attempt, { schedule: backoff.pipe(Schedule.upTo({ duration: retryFor })), while: mayRepeat }),
          firstBackoff
        )
      )
    }).pipe(Effect.catchTags({ SqlError: refused, SchemaError: Effect.die, NoSuchElementError: Effect.die }))

/** Runs a transaction once, with a timeout of 5 s. Fails at once while the breaker is open. */
export const withoutRetry = <A, E, R>(transaction: Effect.Effect<A, E | SqlError, R>) =>
  ifRoom(watched(hungAfter, transaction, (attempt) => attempt))

/** Runs a query, or fails at once if too many queries are in flight. */
const ifRoom = <A, E, R>(query: Effect.Effect<A, E, R>) =>
  Effect.flatMap(DatabaseBreaker, ({ querySemaphore }) => querySemaphore.withPermitsIfAvailable(1)(query)).pipe(
    Effect.flatMap((answer) =>
      Option.isSome(answer)
        ? Effect.succeed(answer.value)
        : Effect.fail(new StoreUnavailable({ cause: "Too many database queries of this process are in flight" }))
    )
  )

const limitOf = (retryFor: Duration.Input, mayTake: Duration.Input) =>
  Duration.max(hungAfter, Duration.max(Duration.fromInputUnsafe(retryFor), Duration.fromInputUnsafe(mayTake)))

/**
 * Runs `query` with the timeout `limit`, and reports the result of each attempt to DatabaseBreaker. The function `repeated` receives
 * one attempt and returns it with retries.
 */
const watched = Effect.fnUntraced(function* <A, E, R>(
  limit: Duration.Duration,
  query: Effect.Effect<A, E, R>,
  repeated: (attempt: Effect.Effect<A, E, R>, health: DatabaseBreaker) => Effect.Effect<A, E, R>
) {
  const health = yield* DatabaseBreaker
  if (health.isOpen()) return yield* new StoreUnavailable({})
  const startedNanos = yield* Clock.monotonicTimeNanos
  const started = yield* monotonicMs
  const isFull = yield* DatabaseFull
  const attempt = Effect.tapError(query, (error) => {
    if (!isSqlError(error)) return health.answered
    if (codeOf(error) === diskFull) MutableRef.set(isFull, true)
    return meansAway(error) ? health.failed(started, error) : health.answered
  })
  const hung = Effect.suspend(() => {
    const why = new StoreUnavailable({ cause: "The database did not answer in time" })
    return Effect.andThen(health.failed(started, why), Effect.fail(why))
  })
  yield* Metric.update(StoreMetrics.activeQueries, 1)
  const answer = yield* within(limit, repeated(attempt, health), hung).pipe(Effect.onExit((exit) => measured(startedNanos, exit)))
  yield* health.answered
  return answer
})

/**
 * Like `Effect.timeout`, but returns at the timeout without waiting for the end of the interrupted query: the driver needs 5 s more
 * to abandon a hung statement.
 */
const within = <A, E, R, E2>(limit: Duration.Duration, query: Effect.Effect<A, E, R>, orElse: Effect.Effect<never, E2>) =>
  // This function uses no generator, because a generator would keep the events of its query in memory until the next full garbage
  // collection.
  // oxlint-disable-next-line no-restricted-properties -- a scope would wait for the query, which is interrupted below and ends within the driver's timeouts
  Effect.flatMap(Effect.forkDetach(query, { startImmediately: true }), (fiber) => {
    const giveUp = Effect.sync(() => fiber.interruptUnsafe())
    return Fiber.join(fiber).pipe(
      Effect.timeoutOrElse({ duration: limit, orElse: () => Effect.andThen(giveUp, orElse) }),
      Effect.onInterrupt(() => giveUp)
    )
  })

const measured = Effect.fnUntraced(function* (startedNanos: bigint, exit: Exit.Exit<unknown, unknown>) {
  const seconds = Number((yield* Clock.monotonicTimeNanos) - startedNanos) / 1e9
  yield* Metric.update(StoreMetrics.activeQueries, -1)
  const labels = Exit.isSuccess(exit) ? succeededLabels : { ...succeededLabels, "error.type": errorTypeOf(exit.cause) }
  yield* Metric.update(StoreMetrics.queryDuration(labels), seconds)
})

const succeededLabels = { "db.system.name": "postgresql" }

/**
 * Returns the value of `error.type`: PostgreSQL's error code, as the OpenTelemetry conventions for databases require. For an error
 * without a code, returns the tag of the error.
 */
const errorTypeOf = (cause: Cause.Cause<unknown>): string => {
  if (Cause.hasInterruptsOnly(cause)) return "cancelled"
  const error = Cause.squash(cause)
  if (isSqlError(error)) return codeOf(error) || error.reason._tag
  return Predicate.hasProperty(error, "_tag") && Predicate.isString(error._tag) ? error._tag : "defect"
}

/** Maps the error of a statement that is not retried. A transient error becomes `StoreUnavailable`; any other error is a defect. */
export const refused = (error: SqlError): Effect.Effect<never, StoreUnavailable> =>
  isTransient(error) ? Effect.fail(new StoreUnavailable({ cause: error })) : Effect.die(error)
