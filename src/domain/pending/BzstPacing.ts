/**
 * Limits the task engine's calls of the BZSt. All replicas together send the same request at most every five minutes. Retries, and
 * all attempts at items of batches, pause between 23:00 and 05:00 German time, when the BZSt does not answer reliably. The first attempt at a
 * single validation does not pause, because a client may wait for it. Confirmations of a requester follow one another.
 */
import { DateTime, Duration, Effect } from "effect"
import { makeLruCache } from "#domain/concurrency/LruCache.ts"
import { monotonicMs } from "#domain/concurrency/MonotonicTime.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
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

/** Lease of a requester's turn, longer than a call of the BZSt and the wait for a place. */
const turnLease = Duration.seconds(40)
/** Maximum number of requesters whose waiting tasks are spread, and the assumed duration of a first call. */
const maxRequesters = 1_000
const firstCallMs = 100

/**
 * Creates a function that runs the confirmation of one task of a requester at a time, over all replicas. If another task has the turn, it
 * returns `busy` with the time to wait. The waits of a requester's tasks follow one another at the duration of its last call.
 */
export const makeInTurn = Effect.gen(function* () {
  const { acquireLease, releaseLease } = yield* RateLimiter
  const { uuidV7 } = yield* Crypto
  const queues = makeLruCache<{ endMs: number; callMs: number }>(maxRequesters)

  return Effect.fnUntraced(function* <A, E, R>(
    requester: string,
    confirm: Effect.Effect<A, E, R>,
    busy: (wait: Duration.Duration) => A
  ) {
    const queue = queues.get(requester) ?? { endMs: 0, callMs: firstCallMs }
    queues.set(requester, queue)
    const [bucket, holder, beganMs] = [`bzst-turn/${requester}`, uuidV7(), yield* monotonicMs]
    if (!(yield* acquireLease(bucket, holder, turnLease))) {
      queue.endMs = Math.max(queue.endMs, beganMs) + queue.callMs
      return busy(Duration.millis(queue.endMs - beganMs))
    }
    const measure = Effect.map(monotonicMs, (nowMs) => {
      queue.callMs = Math.max(firstCallMs, nowMs - beganMs)
    })
    // If the release fails, the lease expires.
    return yield* Effect.ensuring(confirm, Effect.andThen(measure, Effect.ignore(releaseLease(bucket, holder))))
  })
})

/** Returns a function that returns zero if the BZSt may be called now about a task, otherwise the time to wait. */
export const make = Effect.map(RateLimiter, ({ acquireSlots }) =>
  Effect.fnUntraced(function* (question: string, { attempts, batchId }: Pick<ClaimedTask, "attempts" | "batchId">) {
    const quietFor = attempts === 1 && batchId === null ? Duration.zero : untilQuietEnds(yield* DateTime.now)
    if (Duration.isPositive(quietFor)) return quietFor
    const { granted, retryAfterSeconds } = yield* acquireSlots([`bzst/${question}`], 1, sameRequestAfter)
    return granted ? Duration.zero : Duration.seconds(retryAfterSeconds)
  })
)
