/**
 * A bounded queue for CPU-intensive work. Each piece of work belongs to a key, such as a client. Keys get free slots in turn, so
 * a key with much work does not delay other keys. Work beyond a limit is rejected at once.
 */
import { Effect, PartitionedSemaphore } from "effect"

/** `concurrency` is the number of slots; `capacity` limits admitted work in total, `perKey` per key. */
export interface FairQueueOptions {
  readonly concurrency: number
  readonly capacity: number
  readonly perKey: number
}

/** The limit that rejected work would exceed. */
export type Bound = "capacity" | "perKey"

export interface FairQueue {
  /**
   * Runs `work` of a key. If the work would exceed a limit, runs `onRejected` instead. The work itself acquires slots with
   * `inSlot`.
   */
  readonly admit: <A, E, R, B, E2, R2>(
    key: string,
    work: Effect.Effect<A, E, R>,
    onRejected: (bound: Bound) => Effect.Effect<B, E2, R2>
  ) => Effect.Effect<A | B, E | E2, R | R2>
  /**
   * Waits for a slot and runs work in it. Must be called only by work that `admit` has admitted, because only `admit` limits the
   * length of the queue.
   */
  readonly inSlot: <A, E, R>(key: string, work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

export const make = ({ capacity, concurrency, perKey }: FairQueueOptions): Effect.Effect<FairQueue> =>
  Effect.map(PartitionedSemaphore.make<string>({ permits: concurrency }), (slots) => {
    const admittedOf = new Map<string, number>()
    let admitted = 0

    const count = (key: string, change: 1 | -1) => {
      admitted += change
      const ofKey = (admittedOf.get(key) ?? 0) + change
      if (ofKey === 0) admittedOf.delete(key)
      else admittedOf.set(key, ofKey)
    }

    const exceeded = (key: string): Bound | null => {
      if ((admittedOf.get(key) ?? 0) >= perKey) return "perKey"
      return admitted >= capacity ? "capacity" : null
    }

    const admit: FairQueue["admit"] = <A, E, R, B, E2, R2>(
      key: string,
      work: Effect.Effect<A, E, R>,
      onRejected: (bound: Bound) => Effect.Effect<B, E2, R2>
    ) =>
      // An interruption after the increment of the counters must not prevent their decrement.
      Effect.uninterruptibleMask((restore): Effect.Effect<A | B, E | E2, R | R2> => {
        const bound = exceeded(key)
        if (bound !== null) return restore(onRejected(bound))
        count(key, 1)
        return Effect.ensuring(
          restore(work),
          Effect.sync(() => count(key, -1))
        )
      })

    return { admit, inSlot: (key, work) => slots.withPermit(key)(work) }
  })
