/**
 * Spreads the events of a background iteration (notary, projections) over most of a second. Processed at once, the events of a
 * busy second would take a CPU from the callers for a tenth of the next one.
 */
import { Clock, Duration, Effect } from "effect"

export interface Pacer {
  /** Maximum events per batch. */
  readonly batchSize: number
  /** Waits until the batch after `done` of `all` events of the iteration may begin. */
  readonly wait: (done: number, all: number) => Effect.Effect<void>
}

/** More events than this are a backlog: about one second of full load. */
export const backlog = 16_384

/** Most of a second, so that the iteration ends before the next one. */
const spread = Duration.millis(800)

/** Does not wait: for a backlog, and while a reader waits. */
export const atOnce = (batchSize: number): Pacer => ({ batchSize, wait: () => Effect.void })

/** For the background: batches begin at even intervals from now. A late batch does not wait. */
export const evenly = (batchSize: number): Effect.Effect<Pacer> =>
  Effect.map(Clock.monotonicTimeNanos, (beganAt) => ({
    batchSize,
    wait: (done, all) =>
      Effect.flatMap(Clock.monotonicTimeNanos, (now) => {
        const dueInMs = (Duration.toMillis(spread) * done) / all - Number(now - beganAt) / 1e6
        return dueInMs > 0 ? Effect.sleep(dueInMs) : Effect.void
      })
  }))
