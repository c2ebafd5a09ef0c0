/**
 * Reads receipts. An API key reads its own receipts; an account reads those of all its keys, including revoked and claimed keys
 * (rules 34, 42). `ownerId` is the UUID of a key or of an account.
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

/** The personal data of the receipt was erased. The event at `position` still proves the rest. `keyId` is the receipt's API key. */
export class ReceiptErased extends Schema.TaggedError<ReceiptErased>()("ReceiptErased", {
  receiptId: Schema.String,
  keyId: Schema.String,
  position: Schema.Int
}) {
  override get message() {
    return `The personal data of the receipt ${this.receiptId} was erased; the proof of the receipt stays valid`
  }
}

/** A page of receipts, newest first. `before` is the position below which the page starts; null for the first page. */
export interface ReceiptPageRequest {
  readonly ownerId: string
  readonly targetVatId: string | null
  readonly before: number | null
  readonly limit: number
}

/** `next` is the `before` of the next page; null on the last page. */
export interface ReceiptPage {
  readonly receipts: ReadonlyArray<ReceiptSummary>
  readonly next: number | null
}

/** The API key that a receipt was issued to, and the account of the key at that time. */
export interface ReceiptHolder {
  readonly accountId: string
  readonly keyId: string
}

/** A receipt with its evidence and the facts about its event. */
export interface ReceiptRecord extends ReceiptHolder {
  readonly receipt: Receipt
  readonly position: number
  /** Time at which the database stored the event: UTC with microseconds. */
  readonly recordedAt: string
  readonly evidence: {
    readonly request: string
    readonly response: string
    readonly responseSha256: string
    readonly httpStatus: number
  }
  /** Status and time (ISO 8601, UTC) of the BZSt's answer, and the validity dates (YYYY-MM-DD) that come with some statuses. */
  readonly bzstStatus: string
  readonly bzstAnsweredAt: string
  readonly validFrom: string | null
  readonly validUntil: string | null
  /** The calls of the BZSt: start by the clock of the service (ISO 8601, UTC), and duration. */
  readonly calls: ReadonlyArray<{ readonly startedAt: string; readonly durationMs: number }>
  readonly eventId: string
}

export class ReceiptReader extends Context.Service<
  ReceiptReader,
  {
    /** Returns a receipt. Fails with ReceiptErased if its personal data is erased. */
    readonly find: (
      ownerId: string,
      receiptId: string
    ) => Effect.Effect<ReceiptRecord, ReceiptNotFound | ReceiptErased | StoreUnavailable>
    /** Returns the API key and account of a receipt, even if its personal data is erased. */
    readonly holderOf: (ownerId: string, receiptId: string) => Effect.Effect<ReceiptHolder, ReceiptNotFound | StoreUnavailable>
    readonly page: (request: ReceiptPageRequest) => Effect.Effect<ReceiptPage, StoreUnavailable>
  }
>()("vatproof/domain/receipts/ReceiptReader") {}
