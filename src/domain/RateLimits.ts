/** Limits on calls in a span of time, shared by all replicas. */
import { Context, type Duration, Effect, Schema } from "effect"
import type { Caller } from "#domain/Caller.ts"
import type { StoreUnavailable } from "#domain/StoreUnavailable.ts"

/** A window that a call was counted in: `remaining` calls are left until it ends in `resetSeconds`. Negative: one call too many. */
export const RateWindow = Schema.Struct({ limit: Schema.Int, remaining: Schema.Int, resetSeconds: Schema.Int })
export type RateWindow = typeof RateWindow.Type

/**
 * Too many calls; another may be made after `retryAfterSeconds`. `window` is the window that is full, where there is one,
 * and `used` what stands on the caller's meter, where that was read with it.
 */
export class RateLimitExceeded extends Schema.TaggedError<RateLimitExceeded>()("RateLimitExceeded", {
  message: Schema.String,
  retryAfterSeconds: Schema.Int,
  window: Schema.optionalKey(RateWindow),
  used: Schema.optionalKey(Schema.Int)
}) {}

/** The span in which `perMinute` of a plan counts; vatproof.append and append_all have the same (migrations/functions). */
export const secondsOfMinute = 60

/**
 * The window of a call that was the `taken`-th in it. Seconds are rounded up: a client that waits this long does not come too early. A call
 * that waited for the one that began the minute looked at the clock before it: its minute is not longer than a minute for that.
 */
export const rateWindow = (limit: number, taken: number, endsInMs: number): RateWindow => ({
  limit,
  remaining: limit - taken,
  resetSeconds: Math.min(secondsOfMinute, Math.max(1, Math.ceil(endsInMs / 1000)))
})

/** The refusal of a call for which the minute is full. */
export const tooManyInMinute = (window: RateWindow, used?: number): RateLimitExceeded =>
  new RateLimitExceeded({
    message: `At most ${window.limit} validations a minute`,
    retryAfterSeconds: window.resetSeconds,
    window,
    ...(used === undefined ? {} : { used })
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
    /** Takes one of `limit` places in the window that ends now. For small limits: each taken place is remembered. */
    readonly takePlace: (bucket: string, limit: number, window: Duration.Input) => Effect.Effect<Grant, StoreUnavailable>
    /** Takes one place in each of the buckets, or none at all. In a transaction of its caller the places are taken with its commit. */
    readonly takePlaces: (buckets: Buckets, limit: number, window: Duration.Input) => Effect.Effect<Grant, StoreUnavailable>
    /** Whether `takePlaces` would be granted now; takes nothing. */
    readonly lookForPlaces: (buckets: Buckets, limit: number, window: Duration.Input) => Effect.Effect<Grant, StoreUnavailable>
  }
>()("vatproof/domain/RateLimits") {}
