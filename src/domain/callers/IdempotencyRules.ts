/** Rules of the Idempotency-Key: the same request gets the same answer, and one request at a time does the work, on any replica. */
import { Duration, Effect, Schema } from "effect"
import { RateLimiter } from "#domain/callers/RateLimiter.ts"

/** The key came with another request before. */
export class IdempotencyKeyReused extends Schema.TaggedError<IdempotencyKeyReused>()("IdempotencyKeyReused", {}) {
  override get message() {
    return "This Idempotency-Key came with another request before: take a new key for a new request"
  }
}

/** Continues if the key came with the same request before. The hashes are those of the stored request and of this one. */
export const requireSame = (stored: string | null, hash: string): Effect.Effect<void, IdempotencyKeyReused> =>
  stored === hash ? Effect.void : Effect.fail(new IdempotencyKeyReused({}))

/** A request with the same key is being answered. */
export class IdempotencyInProgress extends Schema.TaggedError<IdempotencyInProgress>()("IdempotencyInProgress", {}) {
  override get message() {
    return "A request with the same Idempotency-Key is being answered; repeat this one to get that answer"
  }
}

/** Longer than a request takes: a replica that dies keeps the others waiting for this long. */
const lease = Duration.minutes(1)

/** Gives a function that runs the work for the computed id of a key, or fails if another request does it. */
export const makeOnce = Effect.map(
  RateLimiter,
  ({ acquireLease, releaseLease }) =>
    <A, E, R>(id: string, work: Effect.Effect<A, E, R>) => {
      const bucket = `idempotency/${id}`
      return Effect.gen(function* () {
        if (!(yield* acquireLease(bucket, lease))) return yield* new IdempotencyInProgress({})
        // A lease that cannot be released now expires.
        return yield* Effect.ensuring(work, Effect.ignore(releaseLease(bucket)))
      })
    }
)
