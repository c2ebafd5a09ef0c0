/**
 * When the engine may ask the BZSt: the same question at most every five minutes on all replicas together, and a repeated attempt not between 23:00
 * and 05:00 in Germany, when the BZSt does not answer reliably. The first attempt is the client's own question, which has no such hours.
 */
import { DateTime, Duration, Effect } from "effect"
import { RateLimits } from "#domain/callers/RateLimits.ts"

const sameQuestionAfter = Duration.minutes(5)
const germany = DateTime.zoneMakeNamedUnsafe("Europe/Berlin")
const quiet = { fromHour: 23, untilHour: 5 }

/** Time until the quiet hours end; zero outside of them. */
export const untilQuietEnds = (now: DateTime.Utc): Duration.Duration => {
  const { hour, minute } = DateTime.toParts(DateTime.setZone(now, germany))
  if (hour >= quiet.untilHour && hour < quiet.fromHour) return Duration.zero
  const hours = hour >= quiet.fromHour ? 24 - hour + quiet.untilHour : quiet.untilHour - hour
  return Duration.minutes(hours * 60 - minute)
}

/** Gives a function that takes the right to ask, or says how long to wait for it. */
export const make = Effect.map(RateLimits, ({ acquireSlot }) =>
  Effect.fnUntraced(function* (question: string, attempts: number) {
    const quietFor = attempts === 1 ? Duration.zero : untilQuietEnds(yield* DateTime.now)
    if (Duration.isPositive(quietFor)) return quietFor
    const { granted, retryAfterSeconds } = yield* acquireSlot(`bzst/${question}`, 1, sameQuestionAfter)
    return granted ? Duration.zero : Duration.seconds(retryAfterSeconds)
  })
)
