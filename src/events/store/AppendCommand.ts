/** Commands to append events: their conditions and charges, and the errors of the log. */
import { Schema } from "effect"
import type { Array as Arr } from "effect"
import type { DomainEvent, EventIdentity } from "#domain/kernel/DomainEvent.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** The only log so far. */
export const logId = 0

/** Events of one stream that are stored together or not at all. */
export interface AppendCommand {
  readonly stream: string
  /** The version the stream must have; null for any. */
  readonly expectedVersion: number | null
  readonly events: Arr.NonEmptyReadonlyArray<DomainEvent>
  /** Units charged to a meter, which may not exceed `cap`. */
  readonly charge: { readonly meter: string; readonly units: number; readonly cap: number } | null
  readonly precondition?: Precondition | undefined
  /** The rate window that counts the command, and its limit of calls. */
  readonly minute?: { readonly bucket: string; readonly limit: number } | undefined
  /** Ids of the events, in their order, where they are not drawn. */
  readonly identities?: ReadonlyArray<EventIdentity> | undefined
  /** Another command with the same computed ids may be stored already. */
  readonly mayBeStored?: boolean | undefined
}

/**
 * Cached values that a command relies on: the identity epoch of its caller, and the position of the newest answer under a key.
 */
export interface Precondition {
  readonly epoch: number | null
  readonly newest: { readonly key: string; readonly asOf: number } | null
}

/** `position` of the first event, `used` units of the meter after the charge, and the rate window including this call. */
export interface Appended {
  readonly position: number
  readonly used: number
  /** Null without a rate window, and if an earlier attempt stored the command. */
  readonly minute: typeof CountedMinute.Type | null
  /** Nothing was stored: the command, or another one that settles the same, is stored at `position`. */
  readonly isDuplicate: boolean
}

/** The stream has another version than expected. */
export class VersionConflict extends Schema.TaggedError<VersionConflict>()("VersionConflict", {
  stream: Schema.String,
  actual: Schema.Int
}) {}

/** Calls in a rate window, this call included, and the milliseconds until the window ends. */
export const CountedMinute = Schema.Struct({ taken: Schema.Int, endsInMs: Schema.Int })

/** The charge would exceed the meter's cap. The call is counted in its rate window. */
export class QuotaReached extends Schema.TaggedError<QuotaReached>()("QuotaReached", {
  meter: Schema.String,
  used: Schema.Int,
  minute: Schema.NullOr(CountedMinute)
}) {}

/** The rate window is full. */
export class RateLimitReached extends Schema.TaggedError<RateLimitReached>()("RateLimitReached", {
  used: Schema.Int,
  minute: CountedMinute
}) {}

/** The identity epoch or the newest answer has changed: the caller's cached value is outdated. Nothing is stored or counted. */
export class PreconditionFailed extends Schema.TaggedError<PreconditionFailed>()("PreconditionFailed", {
  outdated: Schema.Literals(["identity", "answer"])
}) {}

export type AppendError = VersionConflict | QuotaReached | RateLimitReached | PreconditionFailed | StoreUnavailable

/** A command with fixed ids, times and bytes, so that resending it is recognised as a duplicate. */
export interface Prepared {
  readonly command: AppendCommand
  readonly rows: ReadonlyArray<EventRow>
  readonly documents: ReadonlyArray<DocumentRow>
}

/** The personal document of the event with that index in `rows`. */
export interface DocumentRow {
  readonly event: number
  /** Canonical JSON with its salt: exactly the bytes of the digest in the event. */
  readonly document: string
  readonly retainUntilMs: number
}

/** An event with its command's conditions. */
export interface EventRow {
  readonly stream: string
  readonly eventId: string
  readonly type: string
  readonly schemaVersion: number
  readonly occurredAtMs: number
  readonly correlationId: string
  readonly causationId: string | null
  readonly traceId: Uint8Array | null
  readonly data: string
  readonly metadata: string
  readonly meter: string | null
  readonly units: number
  readonly cap: bigint | null
  readonly expected: bigint | null
  readonly epoch: bigint | null
  readonly answerKey: string | null
  readonly answerPosition: bigint | null
  readonly minuteLimit: number | null
}
