/** The official sources behind one interface: lookup with failover, their status, and the events about their health. */
import { Context, type DateTime, type Effect, Schema } from "effect"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import type { VatId } from "#domain/vat/VatId.ts"
import * as DomainEvent from "#domain/log/DomainEvent.ts"
import { type Answer, Attempt, FailureReason, SourceName } from "#domain/vat/Verdict.ts"

/**
 * A question to the sources. `requester` is the caller's own VAT ID. If it is null and the caller `hasKey`, VIES gets the operator's.
 * If `mayFallBack` is false, only VIES is called, not the BZSt.
 */
export interface LookUp {
  readonly vatId: VatId
  readonly requester: VatId | null
  readonly hasKey: boolean
  readonly mayFallBack: boolean
  /** True if no client waits for the answer. */
  readonly isBackground?: boolean
}

/** The verdict of the first source that gives one. `attempts` lists all calls. `requester` is the caller's or the operator's, if the source got it. */
export interface Found {
  readonly answer: Answer
  readonly attempts: ReadonlyArray<Attempt>
  readonly requester: VatId | null
}

/** No source gave a verdict. `message` says which sources were called or skipped, and why. */
export class SourcesUnavailable extends Schema.TaggedError<SourcesUnavailable>()("SourcesUnavailable", {
  message: Schema.String,
  attempts: Schema.Array(Attempt),
  retryAfterSeconds: Schema.Int
}) {}

export const SourceState = Schema.Literals(["operational", "degraded", "unavailable"])
export type SourceState = typeof SourceState.Type

/**
 * The health of a source. `answers` becomes false at the first failure of the whole source and true at its next answer. It can be
 * false before `state` becomes `unavailable`. `latencyMs` is the latency of the newest answer; null before the first answer and
 * while the source is unavailable.
 */
export interface SourceStatus {
  readonly state: SourceState
  readonly answers: boolean
  readonly latencyMs: number | null
  readonly lastChecked: DateTime.Utc
}

/**
 * Tells whether VAT IDs with a prefix can be validated. `state` is `degraded` if only the BZSt can validate them. `sinceMs` is
 * the time at which this replica observed the last change, in milliseconds since 1970. `answeredMs` is the time of the newest
 * answer of a source on the monotonic clock; null before the first answer.
 */
export interface MemberStateStatus {
  readonly prefix: string
  readonly state: SourceState
  readonly sinceMs: number
  readonly answeredMs: number | null
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
    readonly lookUp: (lookUp: LookUp) => Effect.Effect<Found, SourcesUnavailable>
    readonly status: Effect.Effect<SourcesStatus>
  }
>()("vatproof/domain/vat/Sources") {}

/** Returns the name of the stream with the events about the health of a source. */
export const sourceStream = (source: SourceName): string => `source-${source}`

const observed = { source: SourceName, member_state: Schema.NullOr(Schema.String), replica: Schema.String }

/**
 * A source, or its register of a member state, is degraded: some calls fail or are slow, but it is still used. `member_state` is the VAT
 * prefix of the register; null for the source as a whole. `reason` is the reason of the last failure.
 */
export const SourceDegraded = DomainEvent.define(
  "SourceDegraded",
  1,
  Schema.Struct({ ...observed, reason: Schema.NullOr(FailureReason) })
)

/** A source, or its register of a member state, failed repeatedly, so the replica stops calling it for a while. */
export const SourceUnavailable = DomainEvent.define(
  "SourceUnavailable",
  1,
  Schema.Struct({ ...observed, reason: Schema.NullOr(FailureReason) })
)

/** A source, or its register of a member state, answers again. */
export const SourceRecovered = DomainEvent.define("SourceRecovered", 1, Schema.Struct(observed))

/** Records changes in the health of the sources. */
export class SourceLog extends Context.Service<
  SourceLog,
  { readonly record: (source: SourceName, event: DomainEvent.DomainEvent) => Effect.Effect<void, StoreUnavailable> }
>()("vatproof/domain/vat/SourceLog") {}
