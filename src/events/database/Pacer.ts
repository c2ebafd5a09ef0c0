/**
 * Spreads the batches of a background iteration (notary, projections) over most of a second. Without it, the background work for a
 * busy second would block a CPU for a tenth of the next second, and requests would wait.
 */
import { Clock, Duration, Effect } from "effect"

export interface Pacer {
  /** Maximum events per batch. */
  readonly batchSize: number
  /** Waits until the next batch may begin, when `done` of the `all` events of the iteration are processed. */
  readonly wait: (done: number, all: number) => Effect.Effect<void>
}

/** A background job with more events than this to process has a backlog: about one second of full load. */
export const backlog = 16_384

/** Time over which an iteration is spread: less than a second, so that it ends before the next iteration begins. */
const spread = Duration.millis(800)

/** Creates a pacer that never waits. It is used for a backlog, and while a reader waits for the result. */
export const atOnce = (batchSize: number): Pacer => ({ batchSize, wait: () => Effect.void })

/** Creates a pacer whose batches begin at even intervals from now. A late batch begins at once. */
export const evenly = (batchSize: number): Effect.Effect<Pacer> =>
  Effect.map(Clock.monotonicTimeNanos, (beganAt) => ({
    batchSize,
    wait: (done, all) =>
      Effect.flatMap(Clock.monotonicTimeNanos, (now) => {
        const dueInMs = (Duration.toMillis(spread) * done) / all - Number(now - beganAt) / 1e6
        return dueInMs > 0 ? Effect.sleep(dueInMs) : Effect.void
      })
  }))
