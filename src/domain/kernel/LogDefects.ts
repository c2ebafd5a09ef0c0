/** Work that goes on for as long as the service does, in turns. */
import { type Duration, Effect } from "effect"

/**
 * A turn whose defect is logged and ends nothing but the turn, after a pause where the next one would come sooner. In a fiber that nobody joins
 * it would end the work for good, and nobody would hear of it.
 */
export const logDefects =
  (message: string, pause: Duration.Input = 0) =>
  <A, E, R>(turn: Effect.Effect<A, E, R>): Effect.Effect<A | void, E, R> =>
    Effect.catchDefect(turn, (defect) => Effect.andThen(Effect.logError(message, defect), Effect.sleep(pause)))
