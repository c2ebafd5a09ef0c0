/** Bounds the concurrent uploads of a replica, and the share of one API key, account and client address, so that slow uploads of one client do not block others. */
import { Effect, Schema } from "effect"
import type { KeyCaller } from "#domain/callers/Caller.ts"
import { RateLimitExceeded } from "#domain/callers/RateLimiter.ts"
import * as FairQueue from "#domain/kernel/FairQueue.ts"

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

const makeShare = (holder: string, perKey: number, of: (uploader: Uploader) => string) =>
  Effect.map(FairQueue.make({ ...places, perKey }), (queue) => {
    const message = `${holder} may have at most ${perKey} uploads in progress; retry after one has ended`
    const tooMany = new RateLimitExceeded({ message, retryAfterSeconds })
    return <A, E, R>(uploader: Uploader, upload: Effect.Effect<A, E, R>) =>
      queue.admit(of(uploader), upload, (bound) => Effect.fail(bound === "perKey" ? tooMany : new UploadsBusy()))
  })

/** Creates a function that runs an upload in a place. It fails at once if no place is free, or if the uploader has all of its share. */
export const make = Effect.gen(function* () {
  const ofKey = yield* makeShare("An API key", 2, ({ caller }) => caller.keyId)
  const ofAccount = yield* makeShare("An account", 4, ({ caller }) => caller.accountId)
  const ofClient = yield* makeShare("A client address", 8, ({ client }) => client)
  return <A, E, R>(uploader: Uploader, upload: Effect.Effect<A, E, R>) =>
    ofClient(uploader, ofAccount(uploader, ofKey(uploader, upload)))
})
