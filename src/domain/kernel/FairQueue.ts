/**
 * A bounded queue for work that takes a processor for long. The slots go to all keys in turn, however much one of them asks for, and what
 * exceeds a bound is rejected at once.
 */
import { Effect, PartitionedSemaphore } from "effect"

/** `concurrency` works have a slot at a time; `capacity` are admitted in all, of one key `perKey`. */
export interface FairQueueOptions {
  readonly concurrency: number
  readonly capacity: number
  readonly perKey: number
}

/** The bound that a rejected work would exceed. */
export type Bound = "capacity" | "perKey"

export interface FairQueue {
  /** Runs work of `key`, or what `onRejected` gives at once. The work takes a slot where it needs one. */
  readonly admit: <A, E, R, B, E2, R2>(
    key: string,
    work: Effect.Effect<A, E, R>,
    onRejected: (bound: Bound) => Effect.Effect<B, E2, R2>
  ) => Effect.Effect<A | B, E | E2, R | R2>
  /** Waits for a slot. Only admitted work may, so that what waits is bounded. */
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
      // No interruption between counting a work and the certainty that it is counted out.
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
