/** Declares GET /v1/qualified-confirmations and /v1/qualified-confirmations/{receipt_id} (rule 34). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Receipt, ReceiptSummary } from "#domain/receipts/Receipt.ts"
import { ReceiptReaderRequired } from "#http/pipeline/Authentication.ts"
import { authenticationErrors, errorBody } from "#http/pipeline/Errors.ts"
import { fromDigits, numberParameters } from "#http/openapi/NumberParameters.ts"
import { DecodeErrors } from "#http/pipeline/DecodeErrors.ts"
import * as MediaTypes from "#http/wire/MediaTypes.ts"
import { Timestamp } from "#http/wire/Timestamp.ts"

/** Bounds of the receipts per page. */
const limits = { minimum: 1, maximum: 100 }
export const defaultLimit = 20

const Limit = Schema.Int.check(Schema.isBetween(limits)).annotate({ description: "Receipts per page", default: defaultLimit })

const words = "Fields that you did not send, and names that no source disclosed, are empty strings"

const ReceiptBody = Receipt.mapFields((fields) => ({ ...fields, issued_at: Timestamp })).annotate({
  identifier: "Receipt",
  description: `A receipt. ${words}`
})

const ReceiptSummaryBody = ReceiptSummary.mapFields((fields) => ({ ...fields, issued_at: Timestamp })).annotate({
  identifier: "ReceiptSummary"
})

export const ReceiptList = Schema.Struct({
  data: Schema.Array(ReceiptSummaryBody),
  next_cursor: Schema.NullOr(Schema.String).annotate({ description: "Cursor of the next page, opaque; null on the last page" })
}).annotate({ identifier: "ReceiptList", description: "A page of receipts" })

const listQuery = {
  target_vat_id: Schema.optionalKey(
    Schema.String.annotate({ description: "Only receipts about this VAT ID", examples: ["DE123456789"] })
  ),
  limit: Schema.optionalKey(fromDigits(Limit)),
  cursor: Schema.optionalKey(Schema.String.annotate({ description: "next_cursor of the previous page" }))
}

export class ReceiptsApi extends HttpApiGroup.make("receipts")
  .add(
    HttpApiEndpoint.get("get", "/v1/qualified-confirmations/:receipt_id", {
      params: {
        receipt_id: Schema.String.annotate({ description: "Id of the receipt", examples: ["VP-QC-20261120-A7K2M9P4R3"] })
      },
      headers: {
        accept: Schema.optionalKey(Schema.String),
        "accept-language": Schema.optionalKey(
          Schema.String.annotate({ description: "Language of the page and the PDF: en (default) or de", examples: ["de"] })
        )
      },
      success: [
        HttpApiSchema.WithHeaders(ReceiptBody, {
          vary: Schema.String,
          "cache-control": Schema.String
        }),
        MediaTypes.page("The receipt as a page, to read and to print"),
        Schema.Uint8Array.annotate({ description: "The receipt as a PDF, with the exact exchange with the BZSt attached" }).pipe(
          HttpApiSchema.asUint8Array({ contentType: "application/pdf" })
        )
      ],
      error: [errorBody("NOT_FOUND"), errorBody("RECEIPT_ERASED"), errorBody("RATE_LIMIT_EXCEEDED"), ...authenticationErrors]
    }).annotateMerge(
      OpenApi.annotations({
        identifier: "getQualifiedConfirmation",
        summary: "Get a receipt",
        description:
          "Returns a receipt. It is readable with the API key that requested the confirmation, or with a login of its account, also after the key is revoked. Others get 404. Accept selects JSON (default), a page (text/html) or a PDF (application/pdf). More than three concurrent PDFs of one key are 429."
      })
    )
  )
  .add(
    HttpApiEndpoint.get("list", "/v1/qualified-confirmations", {
      query: listQuery,
      success: ReceiptList,
      error: [errorBody("VALIDATION_ERROR", "INVALID_VAT_ID"), ...authenticationErrors]
    }).annotateMerge(
      OpenApi.annotations({
        identifier: "listQualifiedConfirmations",
        summary: "List your receipts",
        description:
          "Returns the receipts of the API key or, with a login, of all keys of the account, including revoked keys. Newest first.",
        transform: numberParameters({ limit: Limit })
      })
    )
  )
  .middleware(DecodeErrors)
  .middleware(ReceiptReaderRequired)
  .annotateMerge(OpenApi.annotations({ title: "Receipts", description: "The receipts of qualified confirmations." })) {}
