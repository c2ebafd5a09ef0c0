/**
 * The clock of the sandbox. It follows the replica that travelled last by whole days, because an answer that names another day is
 * malformed.
 */
import { Clock, Duration, Effect, Layer } from "effect"

const dayMs = Duration.toMillis("1 day")
let aheadMs = 0

/** Moves the clock by the whole days by which a replica's clock is ahead. */
export const follow = (replicaAheadMs: number) => {
  aheadMs = Math.floor(replicaAheadMs / dayMs) * dayMs
}

export const layer = Layer.effect(
  Clock.Clock,
  Effect.map(Clock.Clock, (real): Clock.Clock => {
    const nanos = () => real.currentTimeNanosUnsafe() + BigInt(aheadMs) * 1_000_000n
    return Object.assign(Object.create(real), { currentTimeNanosUnsafe: nanos, currentTimeNanos: Effect.sync(nanos) })
  })
)
