/** Makes the PDF of a receipt. The same document always gives the same bytes. */
import { Context, type Effect, Schema } from "effect"
import type { RateLimitExceeded } from "#domain/callers/RateLimits.ts"
import type { ReceiptDocument } from "#domain/receipts/document/ReceiptDocument.ts"

/** Too many PDFs are being made, or this one took too long. */
export class PdfUnavailable extends Schema.TaggedError<PdfUnavailable>()("PdfUnavailable", { retryAfterSeconds: Schema.Int }) {
  override get message() {
    return "The PDF cannot be made just now; the receipt itself is there as JSON and as a page"
  }
}

export class ReceiptPdf extends Context.Service<
  ReceiptPdf,
  {
    /** All keys come in turn. A key that has too many under way gets RateLimitExceeded; PdfUnavailable is for all keys together. */
    readonly render: (keyId: string, document: ReceiptDocument) => Effect.Effect<Uint8Array, PdfUnavailable | RateLimitExceeded>
  }
>()("vatproof/domain/receipts/document/ReceiptPdf") {}
