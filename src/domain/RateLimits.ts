/** Limits on calls in a span of time, shared by all replicas. */
import { Context, type Duration, type Effect, Schema } from "effect"
import type { StoreUnavailable } from "#domain/StoreUnavailable.ts"

/** Too many calls; another may be made after `retryAfterSeconds`. */
export class RateLimitExceeded extends Schema.TaggedError<RateLimitExceeded>()("RateLimitExceeded", {
  message: Schema.String,
  retryAfterSeconds: Schema.Int
}) {}

/** A window that a call was counted in: `remaining` calls are left until it ends in `resetSeconds`. Negative: one call too many. */
export interface RateWindow {
  readonly limit: number
  readonly remaining: number
  readonly resetSeconds: number
}

/** A place in a rolling window was free and is taken now, or the next one is free in `retryAfterSeconds`. */
export interface Grant {
  readonly granted: boolean
  readonly retryAfterSeconds: number
}

export class RateLimits extends Context.Service<
  RateLimits,
  {
    /** Counts one validation of a caller in its minute, which starts with the first call. */
    readonly countInMinute: (bucket: string, limit: number) => Effect.Effect<RateWindow, StoreUnavailable>
    /** Takes one of `limit` places in the window that ends now. For small limits: each taken place is remembered. */
    readonly takePlace: (bucket: string, limit: number, window: Duration.Input) => Effect.Effect<Grant, StoreUnavailable>
  }
>()("vatproof/domain/RateLimits") {}
