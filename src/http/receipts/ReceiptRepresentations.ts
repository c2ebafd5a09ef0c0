/** Responds with a receipt as JSON, page or PDF, as the client prefers. Page and PDF are in English or German. */
import { Effect, Option } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiSchema } from "effect/http-api"
import { AuditTrail } from "#domain/audit/AuditTrail.ts"
import { marked } from "#domain/receipts/Receipt.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { receiptDocument } from "#domain/receipts/document/ReceiptDocument.ts"
import { ReceiptPdf } from "#domain/receipts/document/ReceiptPdf.ts"
import type { ReceiptErased, ReceiptRecord } from "#domain/receipts/ReceiptReader.ts"
import { receiptLanguages } from "#domain/receipts/document/ReceiptText.ts"
import { Site } from "#http/pipeline/SiteSettings.ts"
import type { Problem } from "#http/pipeline/Errors.ts"
import * as Negotiation from "#http/wire/Negotiation.ts"
import * as Page from "#http/site/Page.ts"
import { receiptPage } from "#http/receipts/ReceiptPage.ts"

/** The media types of a receipt. The first one is the default, also if the client accepts none of them. */
const mediaTypes = ["application/json", "text/html", "application/pdf"] as const

/** The media types of a receipt that is opened by a link. */
export const linkedTypes = ["text/html", "application/pdf"] as const
type LinkedType = (typeof linkedTypes)[number]

/** Headers for caches: the response depends on Accept and Accept-Language. It is private, because shared caches ignore X-Api-Key. */
const common = { vary: "Accept, Accept-Language", "cache-control": "private, no-cache" }

/** The request headers that select the representation; undefined if missing. */
interface AcceptHeaders {
  readonly accept?: string | undefined
  readonly "accept-language"?: string | undefined
}

export const languageOf = (accepts: AcceptHeaders) => Negotiation.language(accepts["accept-language"], receiptLanguages)

export const linkedTypeOf = ({ accept }: AcceptHeaders): LinkedType =>
  Option.getOrElse(Negotiation.mediaType(accept, linkedTypes), () => linkedTypes[0])

export const make = Effect.gen(function* () {
  const crypto = yield* Crypto
  const pdf = yield* ReceiptPdf
  const { isSandbox } = yield* Site

  /**
   * Returns the page or the PDF of a receipt. Each `readerId` has its own limit of concurrent PDFs. `pdfUrl` is the link to the PDF on
   * the page.
   */
  const show = Effect.fnUntraced(function* (
    readerId: string,
    record: ReceiptRecord,
    accepts: AcceptHeaders,
    options: ShowOptions
  ) {
    const language = languageOf(accepts)
    const document = receiptDocument({ ...record, receipt: marked(record.receipt, isSandbox) }, language)
    if (options.mediaType === "text/html") {
      return Page.respond(receiptPage(document, crypto.sha256Hex, options.pdfUrl), common)
    }
    return HttpServerResponse.uint8Array(yield* pdf.render(readerId, document), {
      contentType: "application/pdf",
      headers: {
        ...common,
        "content-language": language,
        "x-content-type-options": "nosniff",
        "content-disposition": `inline; filename="${document.receiptId}.pdf"`
      }
    })
  })

  const represent = Effect.fnUntraced(function* (ownerId: string, record: ReceiptRecord, accepts: AcceptHeaders) {
    const mediaType = Option.getOrElse(Negotiation.mediaType(accepts.accept, mediaTypes), () => mediaTypes[0])
    if (mediaType !== "application/json") return yield* show(ownerId, record, accepts, { mediaType })
    return HttpApiSchema.withHeaders({ body: marked(record.receipt, isSandbox), headers: common })
  })

  return { represent, show }
})

interface ShowOptions {
  readonly mediaType: LinkedType
  readonly pdfUrl?: string
}

/** Creates a function that returns the error for an erased receipt. Its `proof` proves that the receipt was issued, and is null if the log is not signed. */
export const makeErased = Effect.map(
  AuditTrail,
  (trail) =>
    ({ keyId, message, position, receiptId }: ReceiptErased) =>
      trail.prove({ _tag: "Key", keyId }, { receiptId }).pipe(
        Effect.map(({ proof }) => proof),
        Effect.catchTag(["NotInLog", "NotSignedYet"], () => Effect.succeed(null)),
        Effect.map((proof): Problem => ({ code: "RECEIPT_ERASED", message, details: { position, proof } }))
      )
)
