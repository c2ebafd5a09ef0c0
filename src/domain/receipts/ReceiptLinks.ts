/** Creates, lists, revokes and opens the links of receipts. */
import { Context, type DateTime, type Effect, type Redacted, Schema } from "effect"
import type { RateLimitExceeded } from "#domain/callers/RateLimiter.ts"
import type { ReceiptLink } from "#domain/receipts/ReceiptLink.ts"
import type { ReceiptErased, ReceiptNotFound, ReceiptRecord } from "#domain/receipts/ReceiptReader.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** The link is unknown, altered, expired or revoked. Clients are not told which. */
export class ReceiptLinkNotFound extends Schema.TaggedError<ReceiptLinkNotFound>()("ReceiptLinkNotFound", {}) {
  override get message() {
    return "The receipt link does not exist or is no longer valid"
  }
}

/** A new link. `token` opens the receipt and is shown once. */
export interface NewReceiptLink {
  readonly linkId: string
  readonly token: Redacted.Redacted
  readonly expiresAt: DateTime.Utc
}

export class ReceiptLinks extends Context.Service<
  ReceiptLinks,
  {
    /** Creates a link that is valid for `days`, or until the key of the receipt is revoked if it `endsWithKey`. `ownerId` is the id of an API key or an account. */
    readonly create: (
      ownerId: string,
      receiptId: string,
      validity: { readonly days: number; readonly endsWithKey: boolean }
    ) => Effect.Effect<NewReceiptLink, ReceiptNotFound | ReceiptErased | RateLimitExceeded | StoreUnavailable>
    /** Returns all links of a receipt, newest first, even if its personal data is erased. */
    readonly list: (
      ownerId: string,
      receiptId: string
    ) => Effect.Effect<ReadonlyArray<ReceiptLink>, ReceiptNotFound | StoreUnavailable>
    /** Revokes a link, even if the personal data of its receipt is erased. Revoking a revoked link succeeds. */
    readonly revoke: (
      ownerId: string,
      receiptId: string,
      linkId: string
    ) => Effect.Effect<void, ReceiptNotFound | ReceiptLinkNotFound | StoreUnavailable>
    /** Returns the receipt that a token opens. */
    readonly open: (
      token: Redacted.Redacted
    ) => Effect.Effect<ReceiptRecord, ReceiptNotFound | ReceiptErased | ReceiptLinkNotFound | StoreUnavailable>
  }
>()("vatproof/domain/receipts/ReceiptLinks") {}
