/**
 * The retry policy of all queries: a short, bounded retry during an outage, then `StoreUnavailable`; immediately while the
 * circuit breaker is open (DatabaseBreaker.ts).
 */
import { Cause, Clock, Duration, Effect, Exit, Fiber, Metric, Option, Predicate, Schedule, type Schema } from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import { monotonicMs, DatabaseBreaker } from "#events/database/DatabaseBreaker.ts"
import * as StoreMetrics from "#events/database/StoreMetrics.ts"

/**
 * Codes that the driver does not count as transient: a read-only server, such as a standby before its promotion (25006), a
 * transaction ended because it was idle (25P03), and an I/O error (58030).
 */
const transientCodes: ReadonlySet<string> = new Set(["25006", "25P03", "58030"])

/**
 * Returns true if the same statement may succeed a moment later on another connection: after a lost connection, PostgreSQL's
 * classes 57P (shutdown, starting up) and 53 (no disk space, memory or connections), and some codes.
 */
export const isTransient = (error: SqlError): boolean => {
  if (error.reason.isRetryable) return true
  const code = codeOf(error)
  return code.startsWith("57P") || code.startsWith("53") || transientCodes.has(code)
}

/** Excludes a full disk (53100) and a standby (25006), which rarely recover while a request waits. */
const isWorthRepeating = (error: SqlError) => isTransient(error) && !["53100", "25006"].includes(codeOf(error))

/** Returns true if the database is unavailable, not only this statement rejected. */
const meansAway = (error: SqlError) => {
  const code = codeOf(error)
  return error.reason._tag === "ConnectionError" || code.startsWith("57P") || code.startsWith("08") || code === "53300"
}

const codeOf = ({ reason: { cause } }: SqlError): string =>
  Predicate.hasProperty(cause, "code") && Predicate.isString(cause.code) ? cause.code : ""

/** 25 ms doubled up to 400 ms, with jitter so that replicas do not retry simultaneously. */
const firstBackoff = "25 millis"
const backoff = Schedule.min([Schedule.exponential("50 millis"), Schedule.spaced("400 millis")]).pipe(Schedule.jittered)

/** Minimum time before a query counts as hung: a stopped server does not send an error. */
const hungAfter = Duration.seconds(5)

/** Errors of a query. */
export type QueryFailure = SqlError | Schema.SchemaError | Cause.NoSuchElementError

/**
 * Retries for at most `retryFor` during an outage; any other error of a query is a defect. Fails after 5 s in total, or after
 * `retryFor` or `mayTake` if longer.
 */
export const withRetry =
  (retryFor: Duration.Input, mayTake: Duration.Input = Duration.zero) =>
  <A, R>(query: Effect.Effect<A, QueryFailure, R>): Effect.Effect<A, StoreUnavailable, R> =>
    ifRoom(withRetryForMany(retryFor, mayTake)(query))

/** Same, for a query that serves a whole batch of callers: there are few of them, so they need no permit. */
export const withRetryForMany =
  (retryFor: Duration.Input, mayTake: Duration.Input = Duration.zero) =>
  <A, R>(query: Effect.Effect<A, QueryFailure, R>): Effect.Effect<A, StoreUnavailable, R> =>
    watched(limitOf(retryFor, mayTake), query, (attempt, health) => {
      const mayRepeat = (error: QueryFailure): error is SqlError =>
        isSqlError(error) && isWorthRepeating(error) && !health.isOpen()
      // Creates the schedule only for queries that fail: it costs more than most queries.
      return Effect.catchIf(attempt, mayRepeat, () =>
        Effect.delay(
          Effect.retry(attempt, { schedule: backoff.pipe(Schedule.upTo({ duration: retryFor })), while: mayRepeat }),
          firstBackoff
        )
      )
    }).pipe(Effect.catchTags({ SqlError: refused, SchemaError: Effect.die, NoSuchElementError: Effect.die }))

/** For a transaction that must not be repeated blindly: fails at once while the breaker is open, and after 5 s. */
export const withoutRetry = <A, E, R>(transaction: Effect.Effect<A, E | SqlError, R>) =>
  ifRoom(watched(hungAfter, transaction, (attempt) => attempt))

/** Fails at once if too many queries are in flight. */
const ifRoom = <A, E, R>(query: Effect.Effect<A, E, R>) =>
  Effect.flatMap(DatabaseBreaker, ({ querySemaphore }) => querySemaphore.withPermitsIfAvailable(1)(query)).pipe(
    Effect.flatMap((answer) =>
      Option.isSome(answer)
        ? Effect.succeed(answer.value)
        : Effect.fail(new StoreUnavailable({ cause: "Too many queries are in flight" }))
    )
  )

const limitOf = (retryFor: Duration.Input, mayTake: Duration.Input) =>
  Duration.max(hungAfter, Duration.max(Duration.fromInputUnsafe(retryFor), Duration.fromInputUnsafe(mayTake)))

/** Runs `query` through `repeated`, reports the result of each attempt to DatabaseBreaker, and fails after `limit`. */
const watched = Effect.fnUntraced(function* <A, E, R>(
  limit: Duration.Duration,
  query: Effect.Effect<A, E, R>,
  repeated: (attempt: Effect.Effect<A, E, R>, health: DatabaseBreaker) => Effect.Effect<A, E, R>
) {
  const health = yield* DatabaseBreaker
  if (health.isOpen()) return yield* new StoreUnavailable({})
  const startedNanos = yield* Clock.monotonicTimeNanos
  const started = yield* monotonicMs
  const attempt = Effect.tapError(query, (error) =>
    isSqlError(error) && meansAway(error) ? health.failed(started, error) : health.answered
  )
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
 * As `Effect.timeout`, but does not wait for the interruption to complete: the driver takes another 5 s to give up a hung
 * statement.
 */
const within = <A, E, R, E2>(limit: Duration.Duration, query: Effect.Effect<A, E, R>, orElse: Effect.Effect<never, E2>) =>
  // Not a generator: one per query would retain a whole batch of events until the next full garbage collection.
  // oxlint-disable-next-line no-restricted-properties -- no scope may wait for it: it is interrupted below and ends within the driver's bounds
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

/** PostgreSQL's error code, as the OpenTelemetry conventions for databases require; otherwise the name of the failure. */
const errorTypeOf = (cause: Cause.Cause<unknown>): string => {
  if (Cause.hasInterruptsOnly(cause)) return "cancelled"
  const error = Cause.squash(cause)
  if (isSqlError(error)) return codeOf(error) || error.reason._tag
  return Predicate.hasProperty(error, "_tag") && Predicate.isString(error._tag) ? error._tag : "defect"
}

/** For a transaction that must not be repeated blindly: maps an outage to `StoreUnavailable` and any other error to a defect. */
export const refused = (error: SqlError): Effect.Effect<never, StoreUnavailable> =>
  isTransient(error) ? Effect.fail(new StoreUnavailable({ cause: error })) : Effect.die(error)
