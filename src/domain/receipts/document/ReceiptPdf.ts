/** Renders a receipt as PDF. The same document always gives the same bytes. */
import { Context, type Effect, Schema } from "effect"
import type { RateLimitExceeded } from "#domain/callers/RateLimiter.ts"
import type { ReceiptDocument } from "#domain/receipts/document/ReceiptDocument.ts"

/** Too many PDFs are in progress, or rendering this PDF took too long. */
export class PdfUnavailable extends Schema.TaggedError<PdfUnavailable>()("PdfUnavailable", { retryAfterSeconds: Schema.Int }) {
  override get message() {
    return "The PDF cannot be created at the moment; the receipt itself is available as JSON and as a page"
  }
}

export class ReceiptPdf extends Context.Service<
  ReceiptPdf,
  {
    /**
     * Returns the bytes of the PDF. Waiting API keys take turns. Fails with RateLimitExceeded if the key has too many PDFs in
     * progress, and with PdfUnavailable if all keys together have too many.
     */
    readonly render: (keyId: string, document: ReceiptDocument) => Effect.Effect<Uint8Array, PdfUnavailable | RateLimitExceeded>
  }
>()("vatproof/domain/receipts/document/ReceiptPdf") {}
