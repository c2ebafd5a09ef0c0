/** Rate limits that all replicas share. The limits of a plan are in PlanLimits.ts. */
import { Context, type Duration, Effect, Schema } from "effect"
import type { Caller } from "#domain/callers/Caller.ts"
import { type RateWindow, Standing } from "#domain/callers/Standing.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/**
 * Too many calls; the next one is allowed after `retryAfterSeconds`.
 * `standing` is set if the caller's limit per minute was exceeded.
 */
export class RateLimitExceeded extends Schema.TaggedError<RateLimitExceeded>()("RateLimitExceeded", {
  message: Schema.String,
  retryAfterSeconds: Schema.Int,
  standing: Schema.optionalKey(Standing)
}) {}

/**
 * Length in seconds of the window of a plan's `perMinute`. The SQL functions vatproof.append and vatproof.count_calls use the
 * same length.
 */
export const rateWindowSeconds = 60

/**
 * Returns the state of a rate-limit window after `taken` calls. The remaining time is rounded up to seconds, so that a client
 * does not retry too early. It is at most a minute: a call that reads the clock and then waits in the database would compute a
 * longer time.
 */
export const rateWindow = (limit: number, taken: number, endsInMs: number): RateWindow => ({
  limit,
  remaining: limit - taken,
  resetSeconds: Math.min(rateWindowSeconds, Math.max(1, Math.ceil(endsInMs / 1000)))
})

/** Returns the name of the bucket that counts a caller's validations per minute. */
export const minuteBucket = ({ stream }: Pick<Caller, "stream">): string => `minute/${stream}`

/**
 * The result of `acquireSlots` or `checkSlots`: whether the call is granted. If not, the next call is possible after
 * `retryAfterSeconds`.
 */
export interface Grant {
  readonly granted: boolean
  readonly retryAfterSeconds: number
}

/** Returns a function that takes a `Grant` and fails with `message` if the call was not granted. */
export const orTooMany =
  (message: string) =>
  ({ granted, retryAfterSeconds }: Grant): Effect.Effect<void, RateLimitExceeded> =>
    granted ? Effect.void : Effect.fail(new RateLimitExceeded({ message, retryAfterSeconds }))

/**
 * The result of `spendBudget`: whether the calls were granted, the calls that all replicas have spent today (UTC), and the time
 * until the day ends.
 */
export interface Spending {
  readonly granted: boolean
  readonly spent: number
  readonly endsIn: Duration.Duration
}

type Buckets = ReadonlyArray<string>

export class RateLimiter extends Context.Service<
  RateLimiter,
  {
    /**
     * Acquires a slot in each bucket, or none if a bucket is full. A bucket has `limit` slots: the calls that it allows in a
     * sliding window. Runs in the caller's transaction, so a rollback frees the slots. Use it for small limits, because the time
     * of each slot is stored.
     */
    readonly acquireSlots: (buckets: Buckets, limit: number, window: Duration.Input) => Effect.Effect<Grant, StoreUnavailable>
    /** Returns what `acquireSlots` would grant now; acquires nothing. */
    readonly checkSlots: (buckets: Buckets, limit: number, window: Duration.Input) => Effect.Effect<Grant, StoreUnavailable>
    /** Acquires a lease that expires after `length` for `holder`, a UUID. Returns false if another holder has it. */
    readonly acquireLease: (bucket: string, holder: string, length: Duration.Input) => Effect.Effect<boolean, StoreUnavailable>
    /** Releases a lease, unless it has expired and another holder has it. */
    readonly releaseLease: (bucket: string, holder: string) => Effect.Effect<void, StoreUnavailable>
    /** Spends `calls` of the day's budget if the total stays within `limit`. With 0 calls it only reads the total. */
    readonly spendBudget: (budget: string, calls: number, limit: number) => Effect.Effect<Spending, StoreUnavailable>
  }
>()("vatproof/domain/callers/RateLimiter") {}
