/** The commands of the event store, their results, and the errors of an append. */
import { Schema } from "effect"
import type { Array as Arr } from "effect"
import type { DomainEvent, EventIdentity } from "#domain/log/DomainEvent.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** The id of the only log in a database. */
export const logId = 0

/** Appends events to one stream, together or not at all. */
export interface AppendCommand {
  readonly stream: string
  /** The version that the stream must have; null for any version. */
  readonly expectedVersion: number | null
  readonly events: Arr.NonEmptyReadonlyArray<DomainEvent>
  /** Charges `units` to a meter, whose total must not exceed `cap`. */
  readonly charge: { readonly meter: string; readonly units: number; readonly cap: number } | null
  readonly precondition?: Precondition | undefined
  /** The rate window that counts the command, and the maximum number of calls in this window. */
  readonly minute?: { readonly bucket: string; readonly limit: number } | undefined
  /** Ids of the events, in the order of `events`. An event without an entry here gets a generated id. */
  readonly identities?: ReadonlyArray<EventIdentity> | undefined
  /** True if the command may be stored already, by another attempt or another replica that computed the same ids. */
  readonly mayBeStored?: boolean | undefined
}

/**
 * The cached values that a command relies on; null for a value that the command does not use. `epoch` is the identity epoch at which
 * the caller was cached; every change of a key or plan increases the identity epoch. `asOf` is the position of the last event about
 * the cached answer for `key`.
 */
export interface Precondition {
  readonly epoch: number | null
  readonly newest: { readonly key: string; readonly asOf: number } | null
}

/** Result of a command: `position` of its first event, `used` units of the meter after the charge, and the rate window with this call. */
export interface Appended {
  readonly position: number
  readonly used: number
  /** Null if the command has no rate window, or if the command was stored before. */
  readonly minute: typeof CountedMinute.Type | null
  /** True if nothing was stored now, because an event with the same id is already stored at `position`. */
  readonly isDuplicate: boolean
}

/** The stream does not have the expected version, because another writer appended to it. Nothing is stored. */
export class VersionConflict extends Schema.TaggedError<VersionConflict>()("VersionConflict", {
  stream: Schema.String,
  actual: Schema.Int
}) {}

/** Number of calls in a rate window, including this call, and milliseconds until the window ends. */
export const CountedMinute = Schema.Struct({ taken: Schema.Int, endsInMs: Schema.Int })

/** The charge would exceed the meter's cap, so nothing is stored. The call is counted in its rate window. */
export class QuotaReached extends Schema.TaggedError<QuotaReached>()("QuotaReached", {
  meter: Schema.String,
  used: Schema.Int,
  minute: Schema.NullOr(CountedMinute)
}) {}

/** The rate window is full, so nothing is stored. The call is counted in the window. */
export class RateLimitReached extends Schema.TaggedError<RateLimitReached>()("RateLimitReached", {
  used: Schema.Int,
  minute: CountedMinute
}) {}

/** The identity epoch or the newest answer has changed, so a cached value is outdated. Nothing is stored or counted. */
export class PreconditionFailed extends Schema.TaggedError<PreconditionFailed>()("PreconditionFailed", {
  outdated: Schema.Literals(["identity", "answer"])
}) {}

export type AppendError = VersionConflict | QuotaReached | RateLimitReached | PreconditionFailed | StoreUnavailable

/** A command with fixed ids, times and bytes. If it is sent again, the database recognises the duplicate. */
export interface Prepared {
  readonly command: AppendCommand
  readonly rows: ReadonlyArray<EventRow>
  readonly documents: ReadonlyArray<DocumentRow>
}

/** The personal document of the event with the index `event` in `rows`. */
export interface DocumentRow {
  readonly event: number
  /** Canonical JSON with the salt: exactly the bytes whose digest is in the event. */
  readonly document: string
  readonly retainUntilMs: number
}

/** An event, and the conditions of its command. Only the conditions in the row of a command's first event apply. */
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
