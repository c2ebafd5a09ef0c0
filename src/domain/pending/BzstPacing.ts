/**
 * Limits the engine's calls of the BZSt. All replicas together send the same request at most every five minutes. Retries pause between 23:00
 * and 05:00 in Germany, when the BZSt does not answer reliably. The first attempt is exempt, because a client may wait for it.
 */
import { DateTime, Duration, Effect } from "effect"
import { RateLimiter } from "#domain/callers/RateLimiter.ts"

const sameRequestAfter = Duration.minutes(5)
const germany = DateTime.zoneMakeNamedUnsafe("Europe/Berlin")
const quiet = { fromHour: 23, untilHour: 5 }

/** Time until the quiet hours end; zero outside of them. */
export const untilQuietEnds = (now: DateTime.Utc): Duration.Duration => {
  const { hour, minute } = DateTime.toParts(DateTime.setZone(now, germany))
  if (hour >= quiet.untilHour && hour < quiet.fromHour) return Duration.zero
  const hours = hour >= quiet.fromHour ? 24 - hour + quiet.untilHour : quiet.untilHour - hour
  return Duration.minutes(hours * 60 - minute)
}

/** Returns a function that acquires permission for a call, or returns the time to wait. */
export const make = Effect.map(RateLimiter, ({ acquireSlot }) =>
  Effect.fnUntraced(function* (question: string, attempts: number) {
    const quietFor = attempts === 1 ? Duration.zero : untilQuietEnds(yield* DateTime.now)
    if (Duration.isPositive(quietFor)) return quietFor
    const { granted, retryAfterSeconds } = yield* acquireSlot(`bzst/${question}`, 1, sameRequestAfter)
    return granted ? Duration.zero : Duration.seconds(retryAfterSeconds)
  })
)
