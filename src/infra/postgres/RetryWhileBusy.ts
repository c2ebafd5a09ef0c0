/** Retries while a resource is locked or unavailable, and logs one warning. */
import { type Duration, Effect, Schedule } from "effect"

export interface RetryWhileBusy<E> {
  /** Returns true if the attempt can succeed in a retry after this error. */
  readonly while: (error: E) => boolean
  readonly every: Duration.Input
  readonly retryFor: Duration.Duration
  /** The warning, logged once after the first failed attempt. */
  readonly warning: (error: E) => string
}

/** Retries for `retryFor`; then fails with the last error. */
export const retryWhileBusy =
  <E>({ every, retryFor, warning, while: isWorthIt }: RetryWhileBusy<E>) =>
  <A, R>(attempt: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
    const schedule = Schedule.spaced(every).pipe(Schedule.upTo({ duration: retryFor }))
    const again = Effect.retry(attempt, { schedule, while: isWorthIt })
    return Effect.catchIf(attempt, isWorthIt, (error) => Effect.andThen(Effect.logWarning(warning(error)), again))
  }
