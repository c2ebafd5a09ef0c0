/**
 * Reads receipts: each API key its own, and each account those of all keys that it has, revoked and claimed ones included (rules 34, 42). `ownerId`
 * is the id of a key or an account: both are UUIDs, and no two are the same.
 */
import { Context, type Effect, Schema } from "effect"
import type { Receipt, ReceiptSummary } from "#domain/receipts/Receipt.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** No such receipt, or not the reader's: nobody learns which. */
export class ReceiptNotFound extends Schema.TaggedError<ReceiptNotFound>()("ReceiptNotFound", { receiptId: Schema.String }) {
  override get message() {
    return `There is no receipt ${this.receiptId} of yours`
  }
}

/** The personal data of the receipt, issued to the key `keyId`, was erased. What it says without it stays proven by the event at `position`. */
export class ReceiptErased extends Schema.TaggedError<ReceiptErased>()("ReceiptErased", {
  receiptId: Schema.String,
  keyId: Schema.String,
  position: Schema.Int
}) {
  override get message() {
    return `The personal data of the receipt ${this.receiptId} was erased; its proof stays valid`
  }
}

/** Newest first; `before` is the position that a page goes on from, null for the first page. */
export interface ReceiptPageRequest {
  readonly ownerId: string
  readonly targetVatId: string | null
  readonly before: number | null
  readonly limit: number
}

/** `next` is the position that the next page goes on from, null on the last page. */
export interface ReceiptPage {
  readonly receipts: ReadonlyArray<ReceiptSummary>
  readonly next: number | null
}

/** The key that a receipt was issued to, and its account at that time. */
export interface ReceiptHolder {
  readonly accountId: string
  readonly keyId: string
}

/** A receipt with the bytes that it was made from. */
export interface ReceiptRecord extends ReceiptHolder {
  readonly receipt: Receipt
  readonly position: number
  /** When the database stored it: UTC with six digits of a second. */
  readonly recordedAt: string
  readonly evidence: {
    readonly request: string
    readonly response: string
    readonly responseSha256: string
    readonly httpStatus: number
  }
  /** The BZSt's own status and time (ISO 8601, UTC), and the validity dates (YYYY-MM-DD) that go with some statuses. */
  readonly bzstStatus: string
  readonly bzstAnsweredAt: string
  readonly validFrom: string | null
  readonly validUntil: string | null
  /** The calls that it took, by our own clock (ISO 8601, UTC). */
  readonly asked: ReadonlyArray<{ readonly startedAt: string; readonly durationMs: number }>
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
