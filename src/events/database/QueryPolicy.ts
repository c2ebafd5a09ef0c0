/**
 * How every query of the service meets a database that is away: a short, bounded retry, then `StoreUnavailable`; at once where it is known
 * to be away (DatabaseBreaker.ts).
 */
import { Cause, Clock, Duration, Effect, Exit, Fiber, Metric, Option, Predicate, Schedule, type Schema } from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import { monotonicMs, DatabaseBreaker } from "#events/database/DatabaseBreaker.ts"
import * as StoreMetrics from "#events/database/StoreMetrics.ts"

/**
 * What the driver does not count as such: a server that takes nothing, as a standby does until it is promoted (25006), one that ended a
 * transaction because nothing came for too long (25P03), and one whose files cannot be read or written (58030).
 */
const transientCodes: ReadonlySet<string> = new Set(["25006", "25P03", "58030"])

/**
 * Whether the same statement can succeed a moment later on another connection. Besides lost connections these are PostgreSQL's
 * classes 57P (shutdown, starting up) and 53 (no disk space, memory or connection left), and some codes.
 */
export const isTransient = (error: SqlError): boolean => {
  if (error.reason.isRetryable) return true
  const code = codeOf(error)
  return code.startsWith("57P") || code.startsWith("53") || transientCodes.has(code)
}

/** A full disk (53100) is not emptied, and a standby (25006) seldom promoted, while a request waits. */
const isWorthRepeating = (error: SqlError) => isTransient(error) && !["53100", "25006"].includes(codeOf(error))

/** What says that nobody is there, rather than that this one statement is refused. */
const meansAway = (error: SqlError) => {
  const code = codeOf(error)
  return error.reason._tag === "ConnectionError" || code.startsWith("57P") || code.startsWith("08") || code === "53300"
}

const codeOf = ({ reason: { cause } }: SqlError): string =>
  Predicate.hasProperty(cause, "code") && Predicate.isString(cause.code) ? cause.code : ""

/** 25 ms doubled up to 400 ms, jittered so that replicas do not come back in step. */
const firstBackoff = "25 millis"
const backoff = Schedule.min([Schedule.exponential("50 millis"), Schedule.spaced("400 millis")]).pipe(Schedule.jittered)

/** How long a query may take at least before it counts as hung: a server that stopped in its tracks says nothing at all. */
const hungAfter = Duration.seconds(5)

/** What a query may fail with. */
export type QueryFailure = SqlError | Schema.SchemaError | Cause.NoSuchElementError

/**
 * Retries while the database is away, for at most `patience`; any other failure of a query is a defect of ours. The whole takes no longer
 * than 5 s, or `patience` or `mayTake` where one of them is longer.
 */
export const withRetry =
  (retryFor: Duration.Input, mayTake: Duration.Input = Duration.zero) =>
  <A, R>(query: Effect.Effect<A, QueryFailure, R>): Effect.Effect<A, StoreUnavailable, R> =>
    ifRoom(withRetryForMany(retryFor, mayTake)(query))

/** As `patiently`, for a query that answers a whole batch of callers: there are few of those, so there is always room for one. */
export const withRetryForMany =
  (retryFor: Duration.Input, mayTake: Duration.Input = Duration.zero) =>
  <A, R>(query: Effect.Effect<A, QueryFailure, R>): Effect.Effect<A, StoreUnavailable, R> =>
    watched(limitOf(retryFor, mayTake), query, (attempt, health) => {
      const mayRepeat = (error: QueryFailure): error is SqlError =>
        isSqlError(error) && isWorthRepeating(error) && !health.isOpen()
      // The schedule is made for queries that fail only: it costs more than most queries.
      return Effect.catchIf(attempt, mayRepeat, () =>
        Effect.delay(
          Effect.retry(attempt, { schedule: backoff.pipe(Schedule.upTo({ duration: retryFor })), while: mayRepeat }),
          firstBackoff
        )
      )
    }).pipe(Effect.catchTags({ SqlError: refused, SchemaError: Effect.die, NoSuchElementError: Effect.die }))

/** For a transaction that must not be repeated blindly: not even begun while the database is known to be away, and bounded to 5 s. */
export const withoutRetry = <A, E, R>(transaction: Effect.Effect<A, E | SqlError, R>) =>
  ifRoom(watched(hungAfter, transaction, (attempt) => attempt))

/** Not begun where too many queries are under way already. */
const ifRoom = <A, E, R>(query: Effect.Effect<A, E, R>) =>
  Effect.flatMap(DatabaseBreaker, ({ querySemaphore }) => querySemaphore.withPermitsIfAvailable(1)(query)).pipe(
    Effect.flatMap((answer) =>
      Option.isSome(answer)
        ? Effect.succeed(answer.value)
        : Effect.fail(new StoreUnavailable({ cause: "Too many queries are under way" }))
    )
  )

const limitOf = (retryFor: Duration.Input, mayTake: Duration.Input) =>
  Duration.max(hungAfter, Duration.max(Duration.fromInputUnsafe(retryFor), Duration.fromInputUnsafe(mayTake)))

/** Runs `query` as `repeated` says, tells what came of each attempt to DatabaseBreaker, and gives up after `limit`. */
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
    const why = new StoreUnavailable({ cause: "The database gave no answer in time" })
    return Effect.andThen(health.failed(started, why), Effect.fail(why))
  })
  yield* Metric.update(StoreMetrics.activeQueries, 1)
  const answer = yield* within(limit, repeated(attempt, health), hung).pipe(Effect.onExit((exit) => measured(startedNanos, exit)))
  yield* health.answered
  return answer
})

/** As `timeout`, but without waiting for the end of what took too long: a hung statement takes the driver another 5 s to give up. */
const within = <A, E, R, E2>(limit: Duration.Duration, query: Effect.Effect<A, E, R>, orElse: Effect.Effect<never, E2>) =>
  // No generator: the engine would keep what one made anew for each query refers to, a whole batch of events, until it looks at old objects.
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

/** PostgreSQL's code where the server refused, as the conventions for databases ask for; else the name of the failure. */
const errorTypeOf = (cause: Cause.Cause<unknown>): string => {
  if (Cause.hasInterruptsOnly(cause)) return "cancelled"
  const error = Cause.squash(cause)
  if (isSqlError(error)) return codeOf(error) || error.reason._tag
  return Predicate.hasProperty(error, "_tag") && Predicate.isString(error._tag) ? error._tag : "defect"
}

/** For a transaction that must not be repeated blindly: away means `StoreUnavailable`, anything else is a defect. */
export const refused = (error: SqlError): Effect.Effect<never, StoreUnavailable> =>
  isTransient(error) ? Effect.fail(new StoreUnavailable({ cause: error })) : Effect.die(error)
