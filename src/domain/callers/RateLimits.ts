/** Limits on calls in a span of time, shared by all replicas. */
import { Context, type Duration, Effect, Schema } from "effect"
import type { Caller } from "#domain/callers/Caller.ts"
import { type RateWindow, Standing } from "#domain/callers/Standing.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** Too many calls; another may be made after `retryAfterSeconds`. `standing` is the caller's, where the limit is that of a caller's minute. */
export class RateLimitExceeded extends Schema.TaggedError<RateLimitExceeded>()("RateLimitExceeded", {
  message: Schema.String,
  retryAfterSeconds: Schema.Int,
  standing: Schema.optionalKey(Standing)
}) {}

/** The window in which `perMinute` of a plan counts; vatproof.append and vatproof.count_calls have the same length. */
export const secondsOfMinute = 60

/**
 * The window of a call that was the `taken`-th in it. Seconds are rounded up: a client that waits this long does not come too early. A call
 * that waited for the one that began the window read the clock before it, hence the upper bound.
 */
export const rateWindow = (limit: number, taken: number, endsInMs: number): RateWindow => ({
  limit,
  remaining: limit - taken,
  resetSeconds: Math.min(secondsOfMinute, Math.max(1, Math.ceil(endsInMs / 1000)))
})

/** The bucket in which a caller's validations of a minute are counted. */
export const minuteBucket = ({ stream }: Pick<Caller, "stream">): string => `minute/${stream}`

/** A place in a rolling window was free and is taken now, or the next one is free in `retryAfterSeconds`. */
export interface Grant {
  readonly granted: boolean
  readonly retryAfterSeconds: number
}

/** Goes on where a place was granted; fails with the message where none was. */
export const orTooMany =
  (message: string) =>
  ({ granted, retryAfterSeconds }: Grant): Effect.Effect<void, RateLimitExceeded> =>
    granted ? Effect.void : Effect.fail(new RateLimitExceeded({ message, retryAfterSeconds }))

type Buckets = ReadonlyArray<string>

export class RateLimits extends Context.Service<
  RateLimits,
  {
    /** Takes one of `limit` slots in the window that ends now. For small limits: each taken place is remembered. */
    readonly acquireSlot: (bucket: string, limit: number, window: Duration.Input) => Effect.Effect<Grant, StoreUnavailable>
    /** Takes one place in each of the buckets, or none at all. In a transaction of its caller the slots are taken with its commit. */
    readonly acquireSlots: (buckets: Buckets, limit: number, window: Duration.Input) => Effect.Effect<Grant, StoreUnavailable>
    /** Whether `acquireSlots` would be granted now; takes nothing. */
    readonly checkSlots: (buckets: Buckets, limit: number, window: Duration.Input) => Effect.Effect<Grant, StoreUnavailable>
  }
>()("vatproof/domain/callers/RateLimits") {}
