/** Background work: an iteration that repeats for the lifetime of a scope, whatever fails. */
import { type Duration, Effect, Schedule, Schema, type Scope } from "effect"
import { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

export interface Pace {
  /** When the next iteration begins. By default at once: the iteration waits for its work itself. */
  readonly schedule?: Schedule.Schedule<unknown>
  /** A pause after a failed iteration, before the schedule continues. */
  readonly afterFailure?: Duration.Input
}

/**
 * Repeats `iteration` until the scope closes. A failure is logged with `name`, the subject of the sentence ("Signing the log"), and the loop goes on.
 * An outage of the database is not logged here, because the breaker of the database logs each outage once.
 */
export const loop = <A, E, R>(
  name: string,
  iteration: Effect.Effect<A, E, R>,
  { afterFailure = 0, schedule = Schedule.forever }: Pace = {}
): Effect.Effect<void, never, R | Scope.Scope> => {
  const pauseAfter = (logged: Effect.Effect<void>) => Effect.andThen(logged, Effect.sleep(afterFailure))
  const report = (error: E) => (isOutage(error) ? Effect.void : Effect.logWarning(`${name} failed; it is repeated`, error))
  return iteration.pipe(
    Effect.matchEffect({ onSuccess: () => Effect.void, onFailure: (error) => pauseAfter(report(error)) }),
    Effect.catchDefect((defect) => pauseAfter(Effect.logError(`${name} failed unexpectedly; it is repeated`, defect))),
    Effect.repeat(schedule),
    Effect.forkScoped,
    Effect.asVoid
  )
}

const isOutage = Schema.is(StoreUnavailable)
