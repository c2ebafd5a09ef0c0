/** A clock for tests of waits. A wait below one second moves the clock ahead and ends at once; a longer wait never ends. */
import { Clock, Duration, Effect } from "effect"

const second = Duration.seconds(1)

/** Returns `on`, which runs an effect on a new clock, and `waits`, which returns the ended waits in milliseconds. */
export const make = () => {
  const waits: Array<number> = []
  const millis = () => waits.reduce((before, wait) => before + wait, 0)
  const nanos = () => BigInt(Math.round(millis() * 1e6))
  const clock: Clock.Clock = {
    currentTimeMillisUnsafe: millis,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: nanos,
    monotonicTimeNanos: Effect.sync(nanos),
    sleep: (duration) =>
      Duration.isLessThan(duration, second) ? Effect.sync(() => void waits.push(Duration.toMillis(duration))) : Effect.never
  }
  return { on: Effect.provideService(Clock.Clock, clock), waits: () => [...waits] }
}
