/** Declares the endpoints that create, list, revoke and open links to a receipt (rule 34). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { linkDays, LinkMaker, usualLinkDays } from "#domain/receipts/ReceiptLink.ts"
import { ReceiptReaderRequired } from "#http/pipeline/Authentication.ts"
import { authenticationErrors, bodyRefusals, errorBody } from "#http/pipeline/Errors.ts"
import { DecodeErrors } from "#http/pipeline/DecodeErrors.ts"
import * as MediaTypes from "#http/wire/MediaTypes.ts"
import { Timestamp } from "#http/wire/Timestamp.ts"

const receipt_id = Schema.String.annotate({ description: "Id of the receipt", examples: ["VP-QC-20261120-A7K2M9P4R3"] })
const linkId = Schema.String.annotate({ description: "Id of the link", examples: ["01a20419-04ae-76a0-8ca8-7e1e53bc6219"] })

/** Path of a link's URL, without the token at its end. */
export const openPath = "/v1/receipt-links"

/** The body of a request for a link. Without a body the link has the default validity. */
const NewLink = [
  Schema.Struct({
    expires_in_days: Schema.optionalKey(
      Schema.Int.check(Schema.isBetween(linkDays)).annotate({
        description: "Number of days that the link is valid",
        default: usualLinkDays,
        examples: [usualLinkDays]
      })
    ),
    until: Schema.optionalKey(
      Schema.Literal("key").annotate({
        description: "key: the link also ends when the API key of the receipt is revoked. Default: it outlives the key"
      })
    )
  }).annotate({ title: "NewReceiptLink" }),
  Schema.Null
] as const

const CreatedLink = Schema.Struct({
  link_id: linkId,
  url: Schema.String.annotate({
    description: "Opens the receipt in a browser, without a key. Shown only once; anyone who has the URL can read the receipt",
    format: "uri"
  }),
  expires_at: Timestamp
}).annotate({ identifier: "ReceiptLink", description: "The new link" })

const ListedLinks = Schema.Struct({
  data: Schema.Array(
    Schema.Struct({
      link_id: linkId,
      created_at: Timestamp,
      created_by: LinkMaker.annotate({
        description: "Creator of the link. key: the API key of the receipt; account: a login of its account"
      }),
      expires_at: Timestamp,
      until: Schema.optionalKey(
        Schema.Literal("key").annotate({ description: "key: the link ends when the API key is revoked" })
      ),
      revoked: Schema.Boolean.annotate({ description: "true: the link is permanently invalid" })
    }).annotate({ identifier: "ListedReceiptLink" })
  )
}).annotate({ identifier: "ReceiptLinks", description: "All links of the receipt, at most 100" })

const RevokedLink = Schema.Struct({ message: Schema.String }).annotate({
  identifier: "ReceiptLinkRevoked",
  description: "The link is revoked"
})

const ofReceipt = [errorBody("NOT_FOUND"), ...authenticationErrors]

const create = HttpApiEndpoint.post("create", "/v1/qualified-confirmations/:receipt_id/links", {
  params: { receipt_id },
  payload: NewLink,
  success: CreatedLink.pipe(HttpApiSchema.status(201)),
  error: [
    ...bodyRefusals,
    errorBody("VALIDATION_ERROR"),
    errorBody("API_KEY_REPLACED"),
    errorBody("RECEIPT_ERASED"),
    errorBody("RATE_LIMIT_EXCEEDED"),
    ...ofReceipt
  ]
}).annotateMerge(
  OpenApi.annotations({
    identifier: "createReceiptLink",
    summary: "Share a receipt",
    description:
      "Creates a link that opens the page and the PDF of this one receipt in a browser without a key, for example for a tax adviser, until the link expires or is revoked. " +
      "Needs the receipt's API key or a login of its account. The link stays valid if the key is revoked, and ends with the account. A receipt has at most 20 valid links, and 100 in total."
  })
)

const list = HttpApiEndpoint.get("list", "/v1/qualified-confirmations/:receipt_id/links", {
  params: { receipt_id },
  success: ListedLinks,
  error: ofReceipt
}).annotateMerge(
  OpenApi.annotations({
    identifier: "listReceiptLinks",
    summary: "List the links of a receipt",
    description:
      "Returns all links, newest first, including expired and revoked ones, without their URLs. Needs the receipt's API key or a login of its account. Works for an erased receipt too."
  })
)

const revoke = HttpApiEndpoint.delete("revoke", "/v1/qualified-confirmations/:receipt_id/links/:link_id", {
  params: { receipt_id, link_id: linkId },
  success: RevokedLink,
  error: [errorBody("API_KEY_REPLACED"), ...ofReceipt]
}).annotateMerge(
  OpenApi.annotations({
    identifier: "revokeReceiptLink",
    summary: "Revoke a link of a receipt",
    description: "The link ends at once and for all time. Works for an erased receipt too. Revoking a link again changes nothing."
  })
)

const refusal = MediaTypes.page("The error as a page")

const open = HttpApiEndpoint.get("open", `${openPath}/:token`, {
  params: { token: Schema.String.annotate({ description: "The token at the end of the link's URL" }) },
  query: {
    format: Schema.optionalKey(
      Schema.Literals(["html", "pdf"]).annotate({
        description: "html: the page. pdf: the PDF. For browsers, which cannot set Accept. Without it Accept selects"
      })
    )
  },
  headers: {
    accept: Schema.optionalKey(Schema.String),
    "accept-language": Schema.optionalKey(
      Schema.String.annotate({ description: "Language of the page and the PDF: en (default) or de", examples: ["de"] })
    )
  },
  success: [
    MediaTypes.page("The receipt as a page, with a link to its PDF"),
    Schema.Uint8Array.annotate({ description: "The receipt as a PDF" }).pipe(
      HttpApiSchema.asUint8Array({ contentType: "application/pdf" })
    )
  ],
  error: [
    errorBody("VALIDATION_ERROR"),
    errorBody("NOT_FOUND"),
    errorBody("RECEIPT_ERASED"),
    errorBody("RATE_LIMIT_EXCEEDED"),
    errorBody("SERVICE_UNAVAILABLE"),
    ...[404, 410, 429, 503].map((status) => refusal.pipe(HttpApiSchema.status(status)))
  ]
}).annotateMerge(
  OpenApi.annotations({
    identifier: "openReceiptLink",
    summary: "Open a receipt by its link",
    description:
      "The `url` of a link has this path. Needs no key and opens only the receipt of the link. An unknown, altered, expired or revoked link is 404. Browsers get an error as a page."
  })
)

export class ReceiptLinksApi extends HttpApiGroup.make("receiptLinks")
  .add(create.middleware(DecodeErrors).middleware(ReceiptReaderRequired))
  .add(list.middleware(DecodeErrors).middleware(ReceiptReaderRequired))
  .add(revoke.middleware(DecodeErrors).middleware(ReceiptReaderRequired))
  .add(open.middleware(DecodeErrors))
  .annotateMerge(
    OpenApi.annotations({ title: "Links of receipts", description: "Open one receipt in a browser, for a limited time." })
  ) {}
