/**
 * How the notary and the projections go through the events of a turn, which comes about once a second. Handled at once, those that came in a
 * busy second take a processor from the callers for a tenth of the next one, and whoever calls then waits behind them.
 */
import { Clock, Duration, Effect } from "effect"

export interface Pacer {
  /** Events of a piece at most. */
  readonly batchSize: number
  /** Waits until the piece may begin that comes after `done` of `all` events of the turn. */
  readonly wait: (done: number, all: number) => Effect.Effect<void>
}

/** More events than this are a backlog: it is about what a second of full load brings. */
export const backlog = 16_384

/** Most of the second, so that the turn is over before the next one. */
const spread = Duration.millis(800)

/** For a backlog, and for whoever is waited for. */
export const atOnce = (batchSize: number): Pacer => ({ batchSize, wait: () => Effect.void })

/** For the background: its pieces begin at even distances from now on. Whoever is late waits for nothing. */
export const evenly = (batchSize: number): Effect.Effect<Pacer> =>
  Effect.map(Clock.monotonicTimeNanos, (beganAt) => ({
    batchSize,
    wait: (done, all) =>
      Effect.flatMap(Clock.monotonicTimeNanos, (now) => {
        const dueInMs = (Duration.toMillis(spread) * done) / all - Number(now - beganAt) / 1e6
        return dueInMs > 0 ? Effect.sleep(dueInMs) : Effect.void
      })
  }))
