/** The official sources behind one interface: lookup with failover, and their status. */
import { Context, type DateTime, type Effect, Schema } from "effect"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import type { VatId } from "#domain/vat/VatId.ts"
import * as DomainEvent from "#domain/kernel/DomainEvent.ts"
import { type Answer, Attempt, FailureReason, SourceName } from "#domain/vat/Verdict.ts"

/** `requester` is the caller's own German VAT ID; `mayFallBack` is false for anonymous callers, who get the EU source only. */
export interface LookUp {
  readonly vatId: VatId
  readonly requester: VatId | null
  readonly mayFallBack: boolean
  /** No client waits for the answer. */
  readonly isBackground?: boolean
}

/** No eligible source gave a verdict. `message` says which sources were tried or skipped, and why. */
export class SourcesUnavailable extends Schema.TaggedError<SourcesUnavailable>()("SourcesUnavailable", {
  message: Schema.String,
  attempts: Schema.Array(Attempt),
  retryAfterSeconds: Schema.Int
}) {}

export const SourceState = Schema.Literals(["operational", "degraded", "unavailable"])
export type SourceState = typeof SourceState.Type

/**
 * `latencyMs` is the newest answer's; null before the first one and while unavailable. `answers` is false from the first failure
 * of the whole source until its next answer, even before the source counts as unavailable.
 */
export interface SourceStatus {
  readonly state: SourceState
  readonly answers: boolean
  readonly latencyMs: number | null
  readonly lastChecked: DateTime.Utc
}

/**
 * Whether VAT IDs of a member state can be validated, by prefix: `degraded` while only the BZSt can. `sinceMs` is when this
 * replica observed the change.
 */
export interface MemberStateStatus {
  readonly prefix: string
  readonly state: SourceState
  readonly sinceMs: number
}

export interface SourcesStatus {
  readonly vies: SourceStatus
  readonly bzst: SourceStatus
  readonly memberStates: ReadonlyArray<MemberStateStatus>
  /** The source that a German VAT ID would be sent to now. */
  readonly active: SourceName
  readonly failoverActive: boolean
}

export class Sources extends Context.Service<
  Sources,
  {
    readonly lookUp: (
      lookUp: LookUp
    ) => Effect.Effect<{ readonly answer: Answer; readonly attempts: ReadonlyArray<Attempt> }, SourcesUnavailable>
    readonly status: Effect.Effect<SourcesStatus>
  }
>()("vatproof/domain/vat/Sources") {}

/** The stream of a source: its health as each replica observed it. */
export const sourceStream = (source: SourceName): string => `source-${source}`

const observed = { source: SourceName, member_state: Schema.NullOr(Schema.String), replica: Schema.String }

/**
 * A source is degraded: some calls fail or are slow, but it is still used. `member_state` is the VAT prefix of the affected
 * register, null for the source as a whole; `reason` is the last failure's.
 */
export const SourceDegraded = DomainEvent.define(
  "SourceDegraded",
  1,
  Schema.Struct({ ...observed, reason: Schema.NullOr(FailureReason) })
)

/** A source, or its register of a member state, failed so often that it is not used for a while. */
export const SourceUnavailable = DomainEvent.define(
  "SourceUnavailable",
  1,
  Schema.Struct({ ...observed, reason: Schema.NullOr(FailureReason) })
)

/** A source, or its register of a member state, answers again. */
export const SourceRecovered = DomainEvent.define("SourceRecovered", 1, Schema.Struct(observed))

/** Records the health of the sources. */
export class SourceLog extends Context.Service<
  SourceLog,
  { readonly record: (source: SourceName, event: DomainEvent.DomainEvent) => Effect.Effect<void, StoreUnavailable> }
>()("vatproof/domain/vat/SourceLog") {}
