/** The clock of a test that sets the wall clock. Waits and the monotonic time continue with the clock of the test. */
import { Clock, Duration, Effect } from "effect"

/** Returns `on`, which runs an effect on the clock, and `setBack`, which sets its wall time back. */
export const make = Effect.map(Clock.Clock, (beneath) => {
  let behindMs = 0
  const millis = () => beneath.currentTimeMillisUnsafe() - behindMs
  const nanos = () => beneath.currentTimeNanosUnsafe() - BigInt(behindMs) * 1_000_000n
  const clock: Clock.Clock = {
    currentTimeMillisUnsafe: millis,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: () => beneath.monotonicTimeNanosUnsafe(),
    monotonicTimeNanos: beneath.monotonicTimeNanos,
    sleep: (duration) => beneath.sleep(duration)
  }
  return {
    on: Effect.provideService(Clock.Clock, clock),
    setBack: (by: Duration.Input) => void (behindMs += Duration.toMillis(Duration.fromInputUnsafe(by)))
  }
})
