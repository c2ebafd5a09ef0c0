/** Counts calls and records what was done for a caller: stored and charged, both or neither, exactly, on any number of replicas. */
import { Context, type Effect, Schema } from "effect"
import type { Caller } from "#domain/callers/Caller.ts"
import type { DomainEvent } from "#domain/kernel/DomainEvent.ts"
import { RateLimitExceeded } from "#domain/callers/RateLimits.ts"
import { Standing } from "#domain/callers/Standing.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import type { VatId } from "#domain/vat/VatId.ts"

/** The caller's units are used up: those of a period that ends at `periodEnd`, or of a lifetime where that is null. */
export class QuotaExceeded extends Schema.TaggedError<QuotaExceeded>()("QuotaExceeded", {
  plan: Schema.Literals(["anonymous", "free", "starter", "business", "enterprise"]),
  periodEnd: Schema.NullOr(Schema.DateTimeUtc),
  standing: Standing
}) {
  override get message() {
    return `All ${this.standing.usage.limit} validations of the ${this.plan} plan are used up`
  }
}

/** A stream of that name exists already; nothing was stored. */
export class StreamExists extends Schema.TaggedError<StreamExists>()("StreamExists", { stream: Schema.String }) {}

/**
 * What was cached of the caller (`identity`) or the answer (`answer`) is out of date; nothing was stored or counted. Read it again and
 * repeat.
 */
export class PreconditionFailed extends Schema.TaggedError<PreconditionFailed>()("PreconditionFailed", {
  what: Schema.Literals(["identity", "answer"])
}) {}

/** What to record. */
export interface Charge {
  readonly caller: Caller
  readonly event: DomainEvent
  /** Charged to the caller's meter. */
  readonly units: 0 | 1
  /** How the caller stood when `admit` counted the call; null: this counts the call in the caller's minute. */
  readonly admitted: Standing | null
  /** The answer that the event repeats: it must still be the newest about the VAT ID. */
  readonly repeats?: { readonly vatId: VatId; readonly asOf: number }
  /** A stream that begins with this event; without it the event is stored in the caller's own. */
  readonly newStream?: string
}

/** The position of the event, and how the caller stands with it. */
export interface Recorded {
  readonly position: number
  readonly standing: Standing
}

export type CallRefusal = QuotaExceeded | RateLimitExceeded

export class Metering extends Context.Service<
  Metering,
  {
    /**
     * Counts a call in the caller's minute and reads the meter; charges nothing. Fails if the minute is full, or an anonymous caller's lifetime is
     * used up. A key's quota comes later in the order of checks (rule 12): `quotaRefusal`.
     */
    readonly admit: (caller: Caller) => Effect.Effect<Standing, CallRefusal | PreconditionFailed | StoreUnavailable>
    /** Stores the event and charges the caller, if the caller and the repeated answer are what they were. */
    readonly record: (
      charge: Charge
    ) => Effect.Effect<Recorded, CallRefusal | PreconditionFailed | StreamExists | StoreUnavailable>
  }
>()("vatproof/domain/callers/Metering") {}

/** The refusal of a call whose caller has used up the quota; null if there is some left. */
export const quotaRefusal = (caller: Caller, standing: Standing): QuotaExceeded | null =>
  standing.usage.used < standing.usage.limit
    ? null
    : new QuotaExceeded({
        plan: caller._tag === "Key" ? caller.plan : "anonymous",
        periodEnd: caller._tag === "Key" ? caller.period.end : null,
        standing
      })

/**
 * The refusal of a call that does not fit into the caller's minute; null if it does. A used-up lifetime of an anonymous caller comes first
 * (rule 40): waiting for the next minute would not help.
 */
export const minuteRefusal = (caller: Caller, standing: Standing): CallRefusal | null => {
  const { window } = standing
  const lifetime = caller._tag === "Anonymous" ? quotaRefusal(caller, standing) : null
  if (lifetime !== null || window === null || window.remaining >= 0) return lifetime
  return new RateLimitExceeded({
    message: `At most ${window.limit} validations a minute`,
    retryAfterSeconds: window.resetSeconds,
    standing
  })
}
