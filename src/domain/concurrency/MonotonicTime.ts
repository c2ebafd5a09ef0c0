/** The monotonic clock, for differences of times: setting the wall clock neither shortens nor extends them. */
import { Clock, Effect } from "effect"

/** Returns milliseconds of the monotonic clock, which starts at an arbitrary time. */
export const monotonicMsOf = (clock: Clock.Clock) => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)

/** Milliseconds of the monotonic clock, which starts at an arbitrary time. */
export const monotonicMs = Effect.clockWith((clock) => Effect.succeed(monotonicMsOf(clock)))

/** Runs an effect of a library that measures with the wall clock: the effect reads the monotonic clock as its wall clock. */
export const onMonotonicTime = Effect.updateService(Clock.Clock, (clock): Clock.Clock => {
  const millis = () => monotonicMsOf(clock)
  const nanos = () => clock.monotonicTimeNanosUnsafe()
  return {
    currentTimeMillisUnsafe: millis,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: clock.monotonicTimeNanos,
    monotonicTimeNanosUnsafe: nanos,
    monotonicTimeNanos: clock.monotonicTimeNanos,
    sleep: (duration) => clock.sleep(duration)
  }
})
