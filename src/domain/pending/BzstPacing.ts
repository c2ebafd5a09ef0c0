/**
 * Limits the task engine's calls of the BZSt. All replicas together send the same request at most every five minutes. Retries, and
 * all attempts at items of batches, pause between 23:00 and 05:00 German time, when the BZSt does not answer reliably. The first attempt at a
 * single validation does not pause, because a client may wait for it.
 */
import { DateTime, Duration, Effect } from "effect"
import { RateLimiter } from "#domain/callers/RateLimiter.ts"
import type { ClaimedTask } from "#domain/pending/TaskQueue.ts"

const sameRequestAfter = Duration.minutes(5)
const germany = DateTime.zoneMakeNamedUnsafe("Europe/Berlin")
const quiet = { fromHour: 23, untilHour: 5 }

/** Returns the time until the pause for the night ends; zero outside of the pause. */
export const untilQuietEnds = (now: DateTime.Utc): Duration.Duration => {
  const local = DateTime.setZone(now, germany)
  const { hour } = DateTime.toParts(local)
  if (hour >= quiet.untilHour && hour < quiet.fromHour) return Duration.zero
  const morning = hour >= quiet.fromHour ? DateTime.add(local, { days: 1 }) : local
  return DateTime.distance(now, DateTime.setParts(morning, { hour: quiet.untilHour, minute: 0, second: 0, millisecond: 0 }))
}

/** Returns a function that returns zero if the BZSt may be called now about a task, otherwise the time to wait. */
export const make = Effect.map(RateLimiter, ({ acquireSlots }) =>
  Effect.fnUntraced(function* (question: string, { attempts, batchId }: Pick<ClaimedTask, "attempts" | "batchId">) {
    const quietFor = attempts === 1 && batchId === null ? Duration.zero : untilQuietEnds(yield* DateTime.now)
    if (Duration.isPositive(quietFor)) return quietFor
    const { granted, retryAfterSeconds } = yield* acquireSlots([`bzst/${question}`], 1, sameRequestAfter)
    return granted ? Duration.zero : Duration.seconds(retryAfterSeconds)
  })
)
