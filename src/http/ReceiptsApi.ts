/** GET /v1/qualified-confirmations and /v1/qualified-confirmations/{receipt_id} (INTERFACE 4.9). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Receipt, ReceiptSummary } from "#domain/Receipt.ts"
import { KeyRequired } from "#http/Authentication.ts"
import { errorBody } from "#http/Errors.ts"
import { RequestErrors } from "#http/RequestErrors.ts"

/** Receipts of a page. */
const limits = { minimum: 1, maximum: 100 }
export const defaultLimit = 20

const errors = [errorBody(401, ["UNAUTHORIZED"]), errorBody(503, ["SERVICE_UNAVAILABLE"])]

export const ReceiptList = Schema.Struct({
  data: Schema.Array(ReceiptSummary),
  next_cursor: Schema.NullOr(Schema.String).annotate({ description: "Opaque; null on the last page" })
}).annotate({ identifier: "ReceiptList" })

export class ReceiptsApi extends HttpApiGroup.make("receipts")
  .add(
    HttpApiEndpoint.get("get", "/v1/qualified-confirmations/:receipt_id", {
      params: { receipt_id: Schema.String },
      headers: {
        accept: Schema.optionalKey(
          Schema.String.annotate({ description: "application/json (default), text/html or application/pdf" })
        ),
        "accept-language": Schema.optionalKey(
          Schema.String.annotate({ description: "Of the page and the PDF: en (default) or de" })
        )
      },
      success: [
        HttpApiSchema.WithHeaders(Receipt.annotate({ identifier: "Receipt" }), {
          vary: Schema.String,
          "cache-control": Schema.String
        }),
        Schema.String.annotate({ description: "A page to read and to print" }).pipe(
          HttpApiSchema.asText({ contentType: "text/html" })
        ),
        Schema.Uint8Array.annotate({ description: "The same as a PDF, with the exact exchange attached" }).pipe(
          HttpApiSchema.asUint8Array({ contentType: "application/pdf" })
        )
      ],
      error: [errorBody(404, ["NOT_FOUND"]), ...errors]
    }).annotateMerge(
      OpenApi.annotations({
        summary: "A receipt",
        description: "Readable by the API key that made it; another key gets 404. As JSON, as a page or as a PDF."
      })
    )
  )
  .add(
    HttpApiEndpoint.get("list", "/v1/qualified-confirmations", {
      query: {
        target_vat_id: Schema.optionalKey(Schema.String.annotate({ description: "Only receipts about this VAT ID" })),
        limit: Schema.optionalKey(
          Schema.Int.check(Schema.isBetween(limits)).annotate({ description: `1 to 100, default ${defaultLimit}` })
        ),
        cursor: Schema.optionalKey(Schema.String.annotate({ description: "next_cursor of the previous page" }))
      },
      success: ReceiptList,
      error: [errorBody(400, ["VALIDATION_ERROR", "INVALID_VAT_ID"]), ...errors]
    }).annotateMerge(OpenApi.annotations({ summary: "The receipts of this API key", description: "Newest first." }))
  )
  .middleware(RequestErrors)
  .middleware(KeyRequired) {}
