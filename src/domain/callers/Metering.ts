/** Counts calls and records their results. Storing and charging are atomic and exact on any number of replicas. */
import { Context, type Effect, Schema } from "effect"
import type { Caller } from "#domain/callers/Caller.ts"
import type { DomainEvent, EventIdentity } from "#domain/log/DomainEvent.ts"
import { RateLimitExceeded } from "#domain/callers/RateLimiter.ts"
import { Standing } from "#domain/callers/Standing.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import type { VatId } from "#domain/vat/VatId.ts"

/**
 * The caller's quota is used up. A new quota begins at `periodEnd`; null
 * means that the quota is for the lifetime of a caller without a key.
 */
export class QuotaExceeded extends Schema.TaggedError<QuotaExceeded>()("QuotaExceeded", {
  plan: Schema.Literals(["anonymous", "free", "starter", "business", "enterprise"]),
  periodEnd: Schema.NullOr(Schema.DateTimeUtc),
  standing: Standing
}) {
  override get message() {
    return `All ${this.standing.usage.limit} validations of the ${this.plan} plan are used up`
  }
}

/** The stream that an event was to begin (`newStream`) exists already, so nothing was stored. */
export class StreamExists extends Schema.TaggedError<StreamExists>()("StreamExists", { stream: Schema.String }) {}

/**
 * The cached caller (`identity`) or answer (`answer`) is outdated, so nothing was stored or counted. Read the outdated value again and retry.
 */
export class PreconditionFailed extends Schema.TaggedError<PreconditionFailed>()("PreconditionFailed", {
  outdated: Schema.Literals(["identity", "answer"])
}) {}

/** An event to record, and the units to charge for it. */
export interface Charge {
  readonly caller: Caller
  readonly event: DomainEvent
  /** Number of units to charge to the caller's meter. */
  readonly units: 0 | 1
  /** The caller's standing if `admit` has counted the call. If it is null, the append counts the call. */
  readonly admitted: Standing | null
  /** For a repeated answer: the cached answer. The append fails unless it is still the newest answer for the VAT ID. */
  readonly repeats?: { readonly vatId: VatId; readonly asOf: number } | undefined
  /** A new stream for this event; by default the event is stored in the caller's stream. */
  readonly newStream?: string
  /** The computed id of the event. The log stores only one event with this id. */
  readonly identity?: IdentifiedEvent | undefined
}

/**
 * The computed id of an event. `accepted` is the event that accepts the validation, if the same append stores it. `mayBeStored`
 * is true if the id is computed from an Idempotency-Key, because an earlier request may have stored the event.
 */
export interface IdentifiedEvent extends EventIdentity {
  readonly accepted?: DomainEvent | undefined
  readonly mayBeStored: boolean
}

/**
 * The event is already stored at `position`, or the event at `position` has closed the same task. Nothing was stored or charged.
 */
export class AlreadyRecorded extends Schema.TaggedError<AlreadyRecorded>()("AlreadyRecorded", { position: Schema.Int }) {
  override get message() {
    return "Another request with the same Idempotency-Key was answered at the same time; retry to get its answer"
  }
}

/** The position of the stored event, and the caller's standing after it. */
export interface Recorded {
  readonly position: number
  readonly standing: Standing
}

export type CallRefusal = QuotaExceeded | RateLimitExceeded

export class Metering extends Context.Service<
  Metering,
  {
    /**
     * Counts a call towards the limit per minute and reads the meter, without charging. Fails beyond the limit per minute, or if
     * the lifetime quota of a caller without a key is used up. For a caller with a key, the quota is checked later, by
     * `quotaRefusal` (rule 12).
     */
    readonly admit: (caller: Caller) => Effect.Effect<Standing, CallRefusal | PreconditionFailed | StoreUnavailable>
    /** Stores the event and charges the caller. Fails with PreconditionFailed if the cached caller or answer has changed. */
    readonly record: (
      charge: Charge
    ) => Effect.Effect<Recorded, AlreadyRecorded | CallRefusal | PreconditionFailed | StreamExists | StoreUnavailable>
  }
>()("vatproof/domain/callers/Metering") {}

/** Returns the error for a caller with a used-up quota, otherwise null. */
export const quotaRefusal = (caller: Caller, standing: Standing): QuotaExceeded | null =>
  standing.usage.used < standing.usage.limit
    ? null
    : new QuotaExceeded({
        plan: caller._tag === "Key" ? caller.plan : "anonymous",
        periodEnd: caller._tag === "Key" ? caller.period.end : null,
        standing
      })

/**
 * Returns the error for a caller beyond its limit per minute, otherwise null. If the lifetime quota of a caller without a key is
 * used up, returns the error for this quota instead (rule 40), because waiting for the next minute would not help.
 */
export const minuteRefusal = (caller: Caller, standing: Standing): CallRefusal | null => {
  const { window } = standing
  const lifetime = caller._tag === "Anonymous" ? quotaRefusal(caller, standing) : null
  if (lifetime !== null || window === null || window.remaining >= 0) return lifetime
  return new RateLimitExceeded({
    message: `At most ${window.limit} validations per minute are allowed`,
    retryAfterSeconds: window.resetSeconds,
    standing
  })
}
