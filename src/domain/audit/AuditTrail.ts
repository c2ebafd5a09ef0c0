/** Reads the log as auditors and the owners of receipts may see it, and what proves that it was not altered. */
import { Context, type DateTime, type Effect, Schema } from "effect"
import type { Auditor } from "#domain/audit/Auditor.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** There is no such thing, or the reader may not see it: nobody learns which. */
export class NotInLog extends Schema.TaggedError<NotInLog>()("NotInLog", { what: Schema.String }) {
  override get message() {
    return `There is no ${this.what}`
  }
}

/** The event is stored, but no signed checkpoint covers it yet. */
export class NotSignedYet extends Schema.TaggedError<NotSignedYet>()("NotSignedYet", { position: Schema.Int }) {
  override get message() {
    return `Position ${this.position} is not covered by a signed checkpoint yet: ask again in a second`
  }
}

/** What must hold of an event; null means anything. Times are those of recording: `from` is included, `to` is not. */
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
 * What a reader asks for: `key` is the id of a key, or with an account the prefix of one. A prefix that the account does not have finds
 * nothing.
 */
export interface AuditQuery extends Omit<AuditFilter, "keyId"> {
  readonly key: string | null
}

/**
 * `lines` are whole events, each as canonical JSON (RFC 8785); `rows` are the same as lines of a table (CSV), each with its end. `next` is the position to go on from, null at
 * the end of the log.
 */
export interface AuditPage {
  readonly lines: () => ReadonlyArray<string>
  readonly rows: () => ReadonlyArray<string>
  readonly next: number | null
}

/** An auditor, or the API key that a receipt was issued to. */
export type ProofReader =
  | { readonly _tag: "Auditor"; readonly auditor: Auditor }
  | { readonly _tag: "Key"; readonly keyId: string }

/** What a proof is asked for. */
export type ProofSubject = { readonly position: number } | { readonly receiptId: string }

/** `proof` stands alone (c2sp.org/tlog-proof); `line` is the event it proves. */
export interface ProvedEvent {
  readonly position: number
  readonly line: string
  readonly proof: string
  /** A key that has signed the proof's checkpoint; null if this service does not know one. */
  readonly verifierKey: string | null
}

export class AuditTrail extends Context.Service<
  AuditTrail,
  {
    /** The types of events that there are. */
    readonly types: ReadonlyArray<string>
    /** The first line of the table that `rows` of pages make, with its end. */
    readonly header: string
    /** Events from position `after` on that pass the filter, oldest first. The beginning of a reading is itself recorded. */
    readonly page: (
      auditor: Auditor,
      query: AuditQuery,
      window: { readonly after: number | null; readonly limit: number }
    ) => Effect.Effect<AuditPage, StoreUnavailable>
    readonly event: (auditor: Auditor, position: number) => Effect.Effect<string, NotInLog | StoreUnavailable>
    readonly prove: (
      reader: ProofReader,
      subject: ProofSubject
    ) => Effect.Effect<ProvedEvent, NotInLog | NotSignedYet | StoreUnavailable>
    /** The newest signed checkpoint (c2sp.org/tlog-checkpoint). */
    readonly checkpoint: Effect.Effect<string, NotInLog | StoreUnavailable>
    /** A tile of hashes by its path (c2sp.org/tlog-tiles), `0/x001/234` or `0/x001/235.p/7`. */
    readonly tile: (path: string) => Effect.Effect<Uint8Array, NotInLog | StoreUnavailable>
  }
>()("vatproof/domain/audit/AuditTrail") {}
