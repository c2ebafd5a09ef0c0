/** A receipt in the form its reader asks for: JSON, a page or a PDF, the latter two in English or German. */
import { Effect, Option } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiSchema } from "effect/http-api"
import { AuditTrail } from "#domain/audit/AuditTrail.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { receiptDocument } from "#domain/receipts/document/ReceiptDocument.ts"
import { ReceiptPdf } from "#domain/receipts/document/ReceiptPdf.ts"
import type { ReceiptErased, ReceiptRecord } from "#domain/receipts/ReceiptReader.ts"
import { receiptLanguages } from "#domain/receipts/document/ReceiptText.ts"
import type { Problem } from "#http/pipeline/Problem.ts"
import * as Negotiation from "#http/wire/Negotiation.ts"
import * as Page from "#http/site/Page.ts"
import { receiptPage } from "#http/receipts/ReceiptPage.ts"

/** The first one is for readers who do not care, or who accept none of them. */
const mediaTypes = ["application/json", "text/html", "application/pdf"] as const

/** What a link gives out: it is opened by browsers. */
export const linkedTypes = ["text/html", "application/pdf"] as const
type LinkedType = (typeof linkedTypes)[number]

/** Whoever stores a response must know what it depends on, and that it is one key's alone: shared caches do not know X-Api-Key. */
const common = { vary: "Accept, Accept-Language", "cache-control": "private, no-cache" }

/** What the reader's headers say; undefined where they are missing. */
interface Wishes {
  readonly accept?: string | undefined
  readonly "accept-language"?: string | undefined
}

export const languageOf = (wishes: Wishes) =>
  Option.getOrElse(Negotiation.language(wishes["accept-language"], receiptLanguages), () => receiptLanguages[0])

export const linkedTypeOf = ({ accept }: Wishes): LinkedType =>
  Option.getOrElse(Negotiation.mediaType(accept, linkedTypes), () => linkedTypes[0])

export const make = Effect.gen(function* () {
  const crypto = yield* Crypto
  const pdf = yield* ReceiptPdf

  /** The page or the PDF. PDFs of one `readerId` are made in turn. `pdfUrl` is where the page says that the PDF is. */
  const show = Effect.fnUntraced(function* (readerId: string, record: ReceiptRecord, wishes: Wishes, options: ShowOptions) {
    const language = languageOf(wishes)
    const document = receiptDocument(record, language)
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

  const represent = Effect.fnUntraced(function* (ownerId: string, record: ReceiptRecord, wishes: Wishes) {
    const mediaType = Option.getOrElse(Negotiation.mediaType(wishes.accept, mediaTypes), () => mediaTypes[0])
    if (mediaType !== "application/json") return yield* show(ownerId, record, wishes, { mediaType })
    return HttpApiSchema.withHeaders({ body: record.receipt, headers: common })
  })

  return { represent, show }
})

interface ShowOptions {
  readonly mediaType: LinkedType
  readonly pdfUrl?: string
}

/** Gives a function from an erased receipt to what is told of it: the proof that it was issued; a log that is not signed has none. */
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
