/** Reads the log for auditors and owners of receipts. Returns proofs that the log was not altered. */
import { Context, type DateTime, type Effect, Schema } from "effect"
import type { Auditor } from "#domain/audit/Auditor.ts"
import type { NotInLog } from "#domain/log/NotInLog.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** The event is stored, but no signed checkpoint covers it yet. */
export class NotSignedYet extends Schema.TaggedError<NotSignedYet>()("NotSignedYet", { position: Schema.Int }) {
  override get message() {
    return `No signed checkpoint covers position ${this.position} yet; retry in a second`
  }
}

/**
 * Conditions on an event. A condition that is null matches every event. `from` (inclusive) and `to` (exclusive) limit the time at
 * which the event was recorded.
 */
export interface AuditFilter {
  readonly from: DateTime.Utc | null
  readonly to: DateTime.Utc | null
  readonly type: string | null
  readonly accountId: string | null
  readonly keyId: string | null
  readonly vatId: string | null
  readonly receiptId: string | null
}

/**
 * A reader's query. `key` is the id of an API key or, if `accountId` is set, the
 * prefix of a key of that account. An unknown prefix matches no event.
 */
export interface AuditQuery extends Omit<AuditFilter, "keyId"> {
  readonly key: string | null
}

/**
 * `lines` are events, each as canonical JSON (RFC 8785). `rows` are the same events as CSV, each with its line break. `next` is
 * the position where the next page starts; null at the end of the log.
 */
export interface AuditPage {
  readonly lines: () => ReadonlyArray<string>
  readonly rows: () => ReadonlyArray<string>
  readonly next: number | null
}

/** The reader who requests a proof: an auditor, or the API key that the receipt was issued to. */
export type ProofReader =
  | { readonly _tag: "Auditor"; readonly auditor: Auditor }
  | { readonly _tag: "Key"; readonly keyId: string }

/** The event to prove: the event at a position, or the event that issued a receipt. */
export type ProofSubject = { readonly position: number } | { readonly receiptId: string }

/** `line` is the proved event as canonical JSON. `proof` is self-contained (c2sp.org/tlog-proof). */
export interface ProvedEvent {
  readonly position: number
  readonly line: string
  readonly proof: string
  /** The public key that verifies the checkpoint of the proof; null if the service does not know it. */
  readonly verifierKey: string | null
}

export class AuditTrail extends Context.Service<
  AuditTrail,
  {
    /** The names of all event types. */
    readonly types: ReadonlyArray<string>
    /** The header line of `rows`, with its line break. */
    readonly header: string
    /**
     * Returns the events that match the query, oldest first, starting with the event at position `after`. If `after` is null, the
     * page is the first one, and its reading is recorded as an event.
     */
    readonly page: (
      auditor: Auditor,
      query: AuditQuery,
      window: { readonly after: number | null; readonly limit: number }
    ) => Effect.Effect<AuditPage, StoreUnavailable>
    /** Returns the event at a position as canonical JSON. The reading is recorded as an event. */
    readonly event: (auditor: Auditor, position: number) => Effect.Effect<string, NotInLog | StoreUnavailable>
    /** Returns an event with the proof that it is in the signed log. */
    readonly prove: (
      reader: ProofReader,
      subject: ProofSubject
    ) => Effect.Effect<ProvedEvent, NotInLog | NotSignedYet | StoreUnavailable>
    /** Returns the newest signed checkpoint (c2sp.org/tlog-checkpoint). */
    readonly checkpoint: Effect.Effect<string, NotInLog | StoreUnavailable>
    /** Returns a tile of hashes by its path (c2sp.org/tlog-tiles), such as `0/x001/234` or `0/x001/235.p/7`. */
    readonly tile: (path: string) => Effect.Effect<Uint8Array, NotInLog | StoreUnavailable>
  }
>()("vatproof/domain/audit/AuditTrail") {}
