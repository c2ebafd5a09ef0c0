/**
 * Reads receipts: an API key reads its own, an account those of all its keys, including revoked and claimed ones (rules 34, 42).
 * `ownerId` is the id of a key or account; both are UUIDs.
 */
import { Context, type Effect, Schema } from "effect"
import type { Receipt, ReceiptSummary } from "#domain/receipts/Receipt.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** The receipt does not exist or belongs to another owner. Clients are not told which. */
export class ReceiptNotFound extends Schema.TaggedError<ReceiptNotFound>()("ReceiptNotFound", { receiptId: Schema.String }) {
  override get message() {
    return `You have no receipt ${this.receiptId}`
  }
}

/** The personal data of the receipt, issued to the key `keyId`, was erased. The event at `position` still proves the rest. */
export class ReceiptErased extends Schema.TaggedError<ReceiptErased>()("ReceiptErased", {
  receiptId: Schema.String,
  keyId: Schema.String,
  position: Schema.Int
}) {
  override get message() {
    return `The personal data of the receipt ${this.receiptId} was erased; its proof stays valid`
  }
}

/** Newest first; `before` is the position of the previous page's end, null for the first page. */
export interface ReceiptPageRequest {
  readonly ownerId: string
  readonly targetVatId: string | null
  readonly before: number | null
  readonly limit: number
}

/** `next` is the position where the next page begins, null on the last page. */
export interface ReceiptPage {
  readonly receipts: ReadonlyArray<ReceiptSummary>
  readonly next: number | null
}

/** The key of a receipt, and the account of the key at the time of issue. */
export interface ReceiptHolder {
  readonly accountId: string
  readonly keyId: string
}

/** A receipt with the stored data it was created from. */
export interface ReceiptRecord extends ReceiptHolder {
  readonly receipt: Receipt
  readonly position: number
  /** When the database stored it: UTC with microseconds. */
  readonly recordedAt: string
  readonly evidence: {
    readonly request: string
    readonly response: string
    readonly responseSha256: string
    readonly httpStatus: number
  }
  /** The BZSt's own status and time (ISO 8601, UTC), and the validity dates (YYYY-MM-DD) that some statuses have. */
  readonly bzstStatus: string
  readonly bzstAnsweredAt: string
  readonly validFrom: string | null
  readonly validUntil: string | null
  /** The calls to the source, by our own clock (ISO 8601, UTC). */
  readonly calls: ReadonlyArray<{ readonly startedAt: string; readonly durationMs: number }>
  readonly eventId: string
}

export class ReceiptReader extends Context.Service<
  ReceiptReader,
  {
    readonly find: (
      ownerId: string,
      receiptId: string
    ) => Effect.Effect<ReceiptRecord, ReceiptNotFound | ReceiptErased | StoreUnavailable>
    /** For what concerns an erased receipt as well. */
    readonly holderOf: (ownerId: string, receiptId: string) => Effect.Effect<ReceiptHolder, ReceiptNotFound | StoreUnavailable>
    readonly page: (request: ReceiptPageRequest) => Effect.Effect<ReceiptPage, StoreUnavailable>
  }
>()("vatproof/domain/receipts/ReceiptReader") {}
