/** The error body and its codes, in words, for the OpenAPI document. */
import { Record as Rec, Struct } from "effect"
import { bodyWith, type ErrorCode, statusOf } from "#http/pipeline/Errors.ts"

/** What each code means to a caller: one sentence each, the same wherever the code may come. */
const meanings = {
  VALIDATION_ERROR: "The request cannot be read, or a field of it is not as described; `details` names each field.",
  INVALID_VAT_ID: "The VAT ID has the format of none of the 27 member states, nor of Northern Ireland; a source was not asked.",
  INVALID_REQUESTER_VAT_ID: "`requester_vat_id` is missing although it is needed, or is no well-formed German VAT ID.",
  QUALIFIED_CONFIRMATION_UNSUPPORTED: "Company data was sent with a VAT ID for which there are no qualified confirmations.",
  DISPOSABLE_EMAIL: "The address belongs to a provider of disposable addresses.",
  INVALID_TOKEN: "The verification token is unknown, or was used already.",
  TOKEN_EXPIRED: "The verification token is older than 24 hours.",
  UNAUTHORIZED:
    "The key, the token or the password is missing or wrong, the address is not confirmed, or a caller without a key has used up the free validations.",
  PAYMENT_REQUIRED:
    "The free plan's month is used up, or what was asked for is part of the paid plans; `details` says what the plan allows, when the month ends and where to get a larger one.",
  NOT_FOUND: "It does not exist, or it is not yours.",
  METHOD_NOT_ALLOWED: "The path exists, but not with this method; the header `Allow` names those it has.",
  REQUEST_TIMEOUT: "The request did not arrive as a whole in time.",
  CONFLICT: "There is an account with this email address already.",
  API_KEY_NOT_CLAIMABLE:
    "The API key belongs to an account with a login, or your account has had a key with the same id; the message says which.",
  RECEIPT_ERASED:
    "The personal data of the receipt was erased, after its retention period or by law; `details` has its proof, which stays valid.",
  PAYLOAD_TOO_LARGE: "The body has more than 16 KiB.",
  UNSUPPORTED_MEDIA_TYPE: "The body was not sent as `application/json`.",
  QUALIFIED_CONFIRMATION_REFUSED:
    "The BZSt refuses to confirm this VAT ID to this requester; the message has its code, and nothing is counted.",
  RATE_LIMIT_EXCEEDED:
    "A limit is reached: of calls in a minute, of a paid plan's month, or of registrations, signups, failed logins or keys; `Retry-After` says when to come back.",
  REQUEST_HEADER_FIELDS_TOO_LARGE: "The path and the headers are longer together than the server reads (32 KiB).",
  INTERNAL_ERROR: "Something went wrong on our side; tell us the `request_id`.",
  EVIDENCE_ALTERED: "What is stored is not what was signed, so it is not served: tell the operator the `request_id`.",
  SOURCE_UNAVAILABLE: "No source could answer, which says nothing about the VAT ID; ask again after `Retry-After`.",
  SERVICE_UNAVAILABLE: "The service cannot do this at the moment; ask again after `Retry-After`."
} as const satisfies Record<ErrorCode, string>

const codes = Struct.keys(statusOf)

/** The codes that a text names, with what they mean, as a list in Markdown. */
export const meaningsOf = (text: string): string => {
  const words = new Set(text.split(/\W+/u))
  return codes
    .filter((code) => words.has(code))
    .map((code) => `- \`${code}\`: ${meanings[code]}`)
    .join("\n")
}

/** All codes in a table, for the document's introduction. */
export const tableOfMeanings = [
  "| status | code | meaning |",
  "|---|---|---|",
  ...Rec.toEntries(meanings).map(([code, meaning]) => `| ${statusOf[code]} | \`${code}\` | ${meaning} |`)
].join("\n")

/** The one error body, as the document's component `Error`. */
export const ErrorBody = bodyWith(codes).annotate({ identifier: "Error", description: "The body of every error" })
