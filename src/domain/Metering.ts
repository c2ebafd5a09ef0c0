/** Records what was done for a caller and charges it, both or neither, exactly, on any number of replicas. */
import { Context, type Effect, type Exit, Schema } from "effect"
import type { Caller, KeyCaller } from "#domain/Caller.ts"
import type { PaidPlanRequired } from "#domain/Confirmation.ts"
import type { DomainEvent } from "#domain/DomainEvent.ts"
import type { InvalidApiKey } from "#domain/Identity.ts"
import { type RateLimitExceeded, RateWindow } from "#domain/RateLimits.ts"
import type { ServedRequest } from "#domain/RequestContext.ts"
import type { StoreUnavailable } from "#domain/StoreUnavailable.ts"
import type { Usage } from "#domain/Usage.ts"

/**
 * The caller's units are used up: those of a period that ends at `periodEnd`, or for good where that is null. `window` is the caller's minute
 * with this call, where it was counted by then.
 */
export class QuotaExceeded extends Schema.TaggedError<QuotaExceeded>()("QuotaExceeded", {
  plan: Schema.Literals(["anonymous", "free", "starter", "business", "enterprise"]),
  used: Schema.Int,
  limit: Schema.Int,
  periodEnd: Schema.NullOr(Schema.DateTimeUtc),
  window: Schema.optionalKey(RateWindow)
}) {
  override get message() {
    return `All ${this.limit} validations of the ${this.plan} plan are used up`
  }
}

/** A new stream was to begin, but there is one of that name already; nothing was stored. */
export class StreamTaken extends Schema.TaggedError<StreamTaken>()("StreamTaken", { stream: Schema.String }) {}

/** What was remembered of the caller or of the answer is no longer so; nothing was stored. */
export class Outdated extends Schema.TaggedError<Outdated>()("Outdated", {}) {}

/** What to record: `units` are charged to the caller's meter; `latestOf` names what this is the newest answer about, if it is one. */
export interface Charge {
  readonly caller: Caller
  readonly event: DomainEvent
  readonly units: 0 | 1
  readonly latestOf: string | null
  /** A stream that begins with this event; else it is stored in the caller's own. */
  readonly newStream?: string
  /** It is part of the paid plans alone. */
  readonly needsPaidPlan?: boolean
  /** Lists in which the event stands, newest first. */
  readonly lists?: ReadonlyArray<string>
}

/** A repetition of the answer that is the newest one under `newest.key`, if it is that at `newest.position`. */
export interface RepeatedCharge {
  readonly caller: KeyCaller
  readonly event: DomainEvent
  readonly newest: { readonly key: string; readonly position: number }
}

/** The outcome: where it was stored, and the caller's usage with it. */
export interface Recorded {
  readonly position: number
  readonly usage: Usage
}

/** `window` is the caller's minute with it; null where that is not known, because the repetition turned out to be stored already. */
export interface RecordedRepetition extends Recorded {
  readonly window: RateWindow | null
}

export type RepetitionRefusal = RateLimitExceeded | QuotaExceeded | StoreUnavailable

export class Metering extends Context.Service<
  Metering,
  {
    /**
     * Fails with `InvalidApiKey` if the caller's key was revoked meanwhile. If its plan was changed, what counts is the new one, which may
     * not have what is paid for (`PaidPlanRequired`).
     */
    readonly record: (charge: Charge) => Effect.Effect<Recorded, QuotaExceeded | InvalidApiKey | StoreUnavailable>
    /** As `record`, for the first event of a stream of its own. */
    readonly recordFirst: (
      charge: Charge & { readonly newStream: string }
    ) => Effect.Effect<Recorded, QuotaExceeded | InvalidApiKey | PaidPlanRequired | StoreUnavailable | StreamTaken>
    /**
     * Records a repetition for one unit, counted in the caller's minute, if caller and answer are still what they were. Plain code, for
     * what is done thousands of times a second: `done` is called once.
     */
    readonly recordRepeatedUnsafe: (
      repeated: RepeatedCharge,
      served: ServedRequest,
      done: (exit: Exit.Exit<RecordedRepetition, RepetitionRefusal | Outdated>) => void
    ) => void
  }
>()("vatproof/domain/Metering") {}

/** The refusal of a caller on whose meter `used` units stand. */
export const quotaExceeded = (caller: Caller, used: number, window: RateWindow | null = null) =>
  new QuotaExceeded({
    plan: caller._tag === "Key" ? caller.plan : "anonymous",
    used,
    limit: caller.usage.limit,
    periodEnd: caller._tag === "Key" ? caller.period.end : null,
    ...(window === null ? {} : { window })
  })
