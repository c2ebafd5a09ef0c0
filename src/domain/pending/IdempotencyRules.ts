/**
 * Rules of the Idempotency-Key: a repeated request gets the same answer,
 * and only one request per key runs at a time, over all replicas.
 */
import { Duration, Effect, Schema } from "effect"
import { RateLimiter } from "#domain/callers/RateLimiter.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"

/** An earlier request with the same Idempotency-Key had different content. */
export class IdempotencyKeyReused extends Schema.TaggedError<IdempotencyKeyReused>()("IdempotencyKeyReused", {}) {
  override get message() {
    return "This Idempotency-Key was used for a different request; use a new key for a new request"
  }
}

/**
 * Fails unless the earlier request has the same hash as this request. Always fails if `stored` is null: the earlier request had
 * no Idempotency-Key, or it has expired.
 */
export const requireSame = (stored: string | null, hash: string): Effect.Effect<void, IdempotencyKeyReused> =>
  stored === hash ? Effect.void : Effect.fail(new IdempotencyKeyReused({}))

/** Another request with the same Idempotency-Key is in progress. */
export class IdempotencyInProgress extends Schema.TaggedError<IdempotencyInProgress>()("IdempotencyInProgress", {}) {
  override get message() {
    return "A request with the same Idempotency-Key is still in progress; retry to get its answer"
  }
}

/**
 * Length of the lease on an Idempotency-Key, longer than a request takes. If a replica crashes during a request, repeated
 * requests are refused until the lease expires.
 */
const lease = Duration.minutes(1)

/**
 * Returns a function that runs `work` while it holds the lease on `id`, which is computed from an Idempotency-Key. Fails if
 * another request holds the lease.
 */
export const makeOnce = Effect.zipWith(
  Crypto,
  RateLimiter,
  ({ uuidV7 }, { acquireLease, releaseLease }) =>
    <A, E, R>(id: string, work: Effect.Effect<A, E, R>) => {
      const bucket = `idempotency/${id}`
      return Effect.gen(function* () {
        const holder = uuidV7()
        if (!(yield* acquireLease(bucket, holder, lease))) return yield* new IdempotencyInProgress({})
        // If the release fails, the lease expires.
        return yield* Effect.ensuring(work, Effect.ignore(releaseLease(bucket, holder)))
      })
    }
)
