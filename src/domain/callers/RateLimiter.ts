/** Rate limits that all replicas share. The limits of a plan are in PlanLimits.ts. */
import { Context, type Duration, Effect, Schema } from "effect"
import type { Caller } from "#domain/callers/Caller.ts"
import { type RateWindow, Standing } from "#domain/callers/Standing.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** Too many calls; the next one is allowed after `retryAfterSeconds`. `standing` is set if the limit is the caller's minute. */
export class RateLimitExceeded extends Schema.TaggedError<RateLimitExceeded>()("RateLimitExceeded", {
  message: Schema.String,
  retryAfterSeconds: Schema.Int,
  standing: Schema.optionalKey(Standing)
}) {}

/** The window of a plan's `perMinute`; vatproof.append and vatproof.count_calls use the same length. */
export const secondsOfMinute = 60

/**
 * Returns the window after its `taken`-th call. Rounds seconds up, so that a client that waits this long is not too early. A call
 * that waited for the call that opened the window has read the clock before it, hence the upper bound.
 */
export const rateWindow = (limit: number, taken: number, endsInMs: number): RateWindow => ({
  limit,
  remaining: limit - taken,
  resetSeconds: Math.min(secondsOfMinute, Math.max(1, Math.ceil(endsInMs / 1000)))
})

/** The bucket that counts a caller's validations per minute. */
export const minuteBucket = ({ stream }: Pick<Caller, "stream">): string => `minute/${stream}`

/** A slot of the sliding window was acquired, or the next one is free in `retryAfterSeconds`. */
export interface Grant {
  readonly granted: boolean
  readonly retryAfterSeconds: number
}

/** Continues if a slot was acquired; otherwise fails with the message. */
export const orTooMany =
  (message: string) =>
  ({ granted, retryAfterSeconds }: Grant): Effect.Effect<void, RateLimitExceeded> =>
    granted ? Effect.void : Effect.fail(new RateLimitExceeded({ message, retryAfterSeconds }))

/** Whether a call fits in a budget per day (UTC) of all replicas, the calls so far, and the time until the day ends. */
export interface Spending {
  readonly granted: boolean
  readonly spent: number
  readonly endsIn: Duration.Duration
}

type Buckets = ReadonlyArray<string>

export class RateLimiter extends Context.Service<
  RateLimiter,
  {
    /** Acquires one of `limit` slots in a sliding window. For small limits: each slot is a row. */
    readonly acquireSlot: (bucket: string, limit: number, window: Duration.Input) => Effect.Effect<Grant, StoreUnavailable>
    /** Acquires one slot in each bucket, or none. Inside a caller's transaction, the slots are acquired on commit. */
    readonly acquireSlots: (buckets: Buckets, limit: number, window: Duration.Input) => Effect.Effect<Grant, StoreUnavailable>
    /** Returns what `acquireSlots` would grant now; acquires nothing. */
    readonly checkSlots: (buckets: Buckets, limit: number, window: Duration.Input) => Effect.Effect<Grant, StoreUnavailable>
    /** Takes a lease, which ends by itself; false if another holder has it. */
    readonly acquireLease: (bucket: string, length: Duration.Input) => Effect.Effect<boolean, StoreUnavailable>
    readonly releaseLease: (bucket: string) => Effect.Effect<void, StoreUnavailable>
    /** Spends calls of a budget of the day, if no more than `limit` are spent with them. 0 calls only look. */
    readonly spendBudget: (budget: string, calls: number, limit: number) => Effect.Effect<Spending, StoreUnavailable>
  }
>()("vatproof/domain/callers/RateLimiter") {}
