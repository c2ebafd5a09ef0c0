/** Keeps background jobs alive after a defect. */
import { type Duration, Effect } from "effect"

/**
 * Returns a function that logs a defect of an iteration and succeeds after an optional pause, so that the job continues. In a detached
 * fiber the defect would otherwise end the job silently.
 */
export const logDefects =
  (message: string, pause: Duration.Input = 0) =>
  <A, E, R>(iteration: Effect.Effect<A, E, R>): Effect.Effect<A | void, E, R> =>
    Effect.catchDefect(iteration, (defect) => Effect.andThen(Effect.logError(message, defect), Effect.sleep(pause)))
