/** A receipt in the form its reader asks for: JSON, a page or a PDF, the latter two in English or German. */
import { Effect, Option } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiSchema } from "effect/http-api"
import { Hashing } from "#domain/Hashing.ts"
import { receiptDocument } from "#domain/ReceiptDocument.ts"
import { ReceiptPdf } from "#domain/ReceiptPdf.ts"
import type { ReceiptRecord } from "#domain/Receipts.ts"
import { receiptLanguages } from "#domain/ReceiptText.ts"
import * as Negotiation from "#http/Negotiation.ts"
import * as Page from "#http/Page.ts"
import { receiptPage } from "#http/ReceiptPage.ts"

/** The first one is for readers who do not care, or who accept none of them. */
const mediaTypes = ["application/json", "text/html", "application/pdf"] as const

/** Whoever stores a response must know what it depends on, and that it is one key's alone: shared caches do not know X-Api-Key. */
const common = { vary: "Accept, Accept-Language", "cache-control": "private, no-cache" }

/** What the reader's headers say; undefined where they are missing. */
interface Wishes {
  readonly accept?: string | undefined
  readonly "accept-language"?: string | undefined
}

export const make = Effect.gen(function* () {
  const hashing = yield* Hashing
  const pdf = yield* ReceiptPdf

  return Effect.fnUntraced(function* (keyId: string, record: ReceiptRecord, wishes: Wishes) {
    const mediaType = Option.getOrElse(Negotiation.mediaType(wishes.accept, mediaTypes), () => mediaTypes[0])
    if (mediaType === "application/json") return HttpApiSchema.withHeaders({ body: record.receipt, headers: common })
    const language = Option.getOrElse(
      Negotiation.language(wishes["accept-language"], receiptLanguages),
      () => receiptLanguages[0]
    )
    const document = receiptDocument(record, language)
    if (mediaType === "text/html") return Page.respond(receiptPage(document, hashing.sha256), common)
    return HttpServerResponse.uint8Array(yield* pdf.render(keyId, document), {
      contentType: "application/pdf",
      headers: {
        ...common,
        "content-language": language,
        "x-content-type-options": "nosniff",
        "content-disposition": `inline; filename="${document.receiptId}.pdf"`
      }
    })
  })
})
