/** Waiting for what others are in the way of. */
import { type Duration, Effect, Schedule } from "effect"

export interface RetryWhileBusy<E> {
  /** Whether it is worth trying again. */
  readonly while: (error: E) => boolean
  readonly every: Duration.Input
  readonly patience: Duration.Duration
  /** What is said once, when the first try has failed. */
  readonly warning: (error: E) => string
}

/** Tries again and again, and says so; fails as the last try does. */
export const retryWhileBusy =
  <E>({ every, patience, warning, while: isWorthIt }: RetryWhileBusy<E>) =>
  <A, R>(attempt: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
    const schedule = Schedule.spaced(every).pipe(Schedule.upTo({ duration: patience }))
    const again = Effect.retry(attempt, { schedule, while: isWorthIt })
    return Effect.catchIf(attempt, isWorthIt, (error) => Effect.andThen(Effect.logWarning(warning(error)), again))
  }
