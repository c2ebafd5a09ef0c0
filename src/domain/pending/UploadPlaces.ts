/** Bounds the concurrent uploads of a replica, and the share of one API key, account and client address, so that slow uploads of one client do not block others. */
import { Clock, Effect, MutableRef, Schema } from "effect"
import type { KeyCaller } from "#domain/callers/Caller.ts"
import { RateLimitExceeded } from "#domain/callers/RateLimiter.ts"
import { monotonicMsOf } from "#domain/concurrency/MonotonicTime.ts"
import { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import * as FairQueue from "#domain/concurrency/FairQueue.ts"

/** Maximum number of uploads of a replica, because each keeps its VAT IDs and custom ids in memory. */
const places = { concurrency: 16, capacity: 16 }
const retryAfterSeconds = 2

/** All places are taken. */
export class UploadsBusy extends Schema.TaggedError<UploadsBusy>()("UploadsBusy", {}) {
  override get message() {
    return `The server reads ${places.capacity} uploads, its maximum; retry after ${retryAfterSeconds} seconds`
  }
}

/** A caller who uploads, and the client's address. */
export interface Uploader {
  readonly caller: KeyCaller
  readonly client: string
}

/** If an upload waits for the database for longer than this, the database is the cause of uploads in progress. */
const stallMs = 1_000
/** A stall counts for this long after its last wait, because the next statement of each upload begins to wait only then. */
const stallMemoryMs = 5_000
const stalled = new StoreUnavailable({ cause: "The uploads in progress wait for the database" })

/** Creates `stored`, which notes the uploads that wait for the database, and `isStalled`. */
const makeStorage = Effect.map(Clock.Clock, (clock) => {
  const waits = new Set<{ readonly sinceMs: number }>()
  const stalledAtMs = MutableRef.make(Number.NEGATIVE_INFINITY)
  const isLong = ({ sinceMs }: { readonly sinceMs: number }) => monotonicMsOf(clock) - sinceMs > stallMs
  const stored = <A, E, R>(write: Effect.Effect<A, E, R>) =>
    Effect.suspend(() => {
      const wait = { sinceMs: monotonicMsOf(clock) }
      waits.add(wait)
      return Effect.ensuring(
        write,
        Effect.sync(() => {
          waits.delete(wait)
          if (isLong(wait)) MutableRef.set(stalledAtMs, monotonicMsOf(clock))
        })
      )
    })
  const isStalled = () => monotonicMsOf(clock) - stalledAtMs.current < stallMemoryMs || [...waits].some(isLong)
  return { stored, isStalled }
})

const makeShare = (holder: string, perKey: number, isStalled: () => boolean, of: (uploader: Uploader) => string) =>
  Effect.map(FairQueue.make({ ...places, perKey }), (queue) => {
    const message = `${holder} may have at most ${perKey} uploads in progress; retry after one has ended`
    const tooMany = new RateLimitExceeded({ message, retryAfterSeconds })
    return <A, E, R>(uploader: Uploader, upload: Effect.Effect<A, E, R>) =>
      queue.admit(of(uploader), upload, (bound) =>
        Effect.fail(isStalled() ? stalled : bound === "perKey" ? tooMany : new UploadsBusy())
      )
  })

/**
 * Creates `inPlace`, which runs an upload in a place, and `stored`, in which an upload writes to the database. `inPlace` fails at once
 * if no place is free, or if the uploader has all of its share.
 */
export const make = Effect.gen(function* () {
  const { isStalled, stored } = yield* makeStorage
  const ofKey = yield* makeShare("An API key", 2, isStalled, ({ caller }) => caller.keyId)
  const ofAccount = yield* makeShare("An account", 4, isStalled, ({ caller }) => caller.accountId)
  const ofClient = yield* makeShare("A client address", 8, isStalled, ({ client }) => client)
  const inPlace = <A, E, R>(uploader: Uploader, upload: Effect.Effect<A, E, R>) =>
    ofClient(uploader, ofAccount(uploader, ofKey(uploader, upload)))
  return { inPlace, stored }
})
