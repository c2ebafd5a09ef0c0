/** How every query of the service meets a database that is away: a short, bounded retry, then `StoreUnavailable`. */
import { type Cause, type Duration, Effect, Predicate, Schedule, type Schema } from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { StoreUnavailable } from "#domain/StoreUnavailable.ts"

/**
 * Whether the same statement can succeed a moment later on another connection. Besides lost connections these are PostgreSQL's
 * classes 57P (shutdown, starting up) and 53 (no disk space, memory or connection left).
 */
export const isTransient = (error: SqlError): boolean => {
  if (error.reason.isRetryable) return true
  const cause = error.reason.cause
  const code = Predicate.hasProperty(cause, "code") && Predicate.isString(cause.code) ? cause.code : ""
  return code.startsWith("57P") || code.startsWith("53")
}

/** 25 ms doubled up to 400 ms, jittered so that replicas do not come back in step. */
const backoff = Schedule.min([Schedule.exponential("25 millis"), Schedule.spaced("400 millis")]).pipe(Schedule.jittered)

type QueryFailure = SqlError | Schema.SchemaError | Cause.NoSuchElementError

/** Retries while the database is away, for at most `patience`; any other failure of a query is a defect of ours. */
export const patiently =
  (patience: Duration.Input) =>
  <A, R>(query: Effect.Effect<A, QueryFailure, R>): Effect.Effect<A, StoreUnavailable, R> =>
    query.pipe(
      Effect.retry({ schedule: backoff.pipe(Schedule.upTo({ duration: patience })), while: isTransientFailure }),
      Effect.catchTags({ SqlError: refused, SchemaError: Effect.die, NoSuchElementError: Effect.die })
    )

/** For a transaction that must not be repeated blindly: away means `StoreUnavailable`, anything else is a defect. */
export const refused = (error: SqlError): Effect.Effect<never, StoreUnavailable> =>
  isTransient(error) ? Effect.fail(new StoreUnavailable({ cause: error })) : Effect.die(error)

const isTransientFailure = (error: QueryFailure) => isSqlError(error) && isTransient(error)
