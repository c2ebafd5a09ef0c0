/**
 * Spreads the work of a background iteration (of the notary or of a projection) over most of a second, in batches of events. Without
 * pauses between them, the work for one second of full load would occupy a CPU for a tenth of the next second, and requests would
 * wait.
 */
import { Clock, Duration, Effect } from "effect"

export interface Pacer {
  /** Maximum number of events per batch. */
  readonly batchSize: number
  /**
   * Waits until it is time for the next batch. `done` is the number of processed events of this iteration, and `all` is the number
   * of all its events.
   */
  readonly wait: (done: number, all: number) => Effect.Effect<void>
}

/** A background job has a backlog if it has more unprocessed events than this: about one second of full load. */
export const backlog = 16_384

/** Time over which the work of an iteration is spread: less than a second, so that the iteration ends before the next one begins. */
const spread = Duration.millis(800)

/** Creates a pacer that never waits. It is used for a backlog, and while a reader waits for the result. */
export const atOnce = (batchSize: number): Pacer => ({ batchSize, wait: () => Effect.void })

/** Creates a pacer whose batches begin at even intervals. A batch that is late begins at once. */
export const evenly = (batchSize: number): Effect.Effect<Pacer> =>
  Effect.map(Clock.monotonicTimeNanos, (beganAt) => ({
    batchSize,
    wait: (done, all) =>
      Effect.flatMap(Clock.monotonicTimeNanos, (now) => {
        const dueInMs = (Duration.toMillis(spread) * done) / all - Number(now - beganAt) / 1e6
        return dueInMs > 0 ? Effect.sleep(dueInMs) : Effect.void
      })
  }))
