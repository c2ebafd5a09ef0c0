/** The error body and its codes, in words, for the OpenAPI document. */
import { Record as Rec } from "effect"
import { bodyWith, codes, type ErrorCode, statusOf } from "#http/pipeline/Errors.ts"

/** The meaning of each code for callers, in one sentence, independent of the endpoint. */
const meanings = {
  VALIDATION_ERROR: "The request is malformed, or a field is invalid; `details` names each field.",
  INVALID_VAT_ID: "The VAT ID has the format of no member state and not of Northern Ireland; no source was asked.",
  INVALID_REQUESTER_VAT_ID: "`requester_vat_id` is missing although required, or is not a well-formed German VAT ID.",
  QUALIFIED_CONFIRMATION_UNSUPPORTED: "This service issues no qualified confirmations for such VAT IDs; send no company data.",
  DISPOSABLE_EMAIL: "The address belongs to a provider of disposable addresses.",
  INVALID_TOKEN: "The token of the mail is unknown or was already used.",
  TOKEN_EXPIRED: "The token of the mail has expired: after 24 hours, for a password after one hour.",
  UNAUTHORIZED:
    "The key, the token or the password is missing or wrong, the address is not confirmed, or the free validations without a key are used up.",
  PAYMENT_REQUIRED:
    "The free plan's month is used up, or only paid plans include the request; `details` has the plan's limit, the end of the month and a link to larger plans.",
  NOT_FOUND: "The path, key or receipt does not exist or is not yours.",
  METHOD_NOT_ALLOWED: "The path does not support this method; the header `Allow` lists the supported ones.",
  REQUEST_TIMEOUT: "The request did not arrive completely within 30 seconds.",
  CONFLICT: "An account with this email address already exists.",
  API_KEY_NOT_CLAIMABLE:
    "The API key belongs to an account with a login, or your account has had a key with the same id; the message says which.",
  IDEMPOTENCY_IN_PROGRESS:
    "A request with the same `Idempotency-Key` is being answered; repeat it after `Retry-After` to get the same answer.",
  RECEIPT_ERASED:
    "The personal data of the receipt was erased, after its retention period or on request; `details` has its proof, which stays valid.",
  PAYLOAD_TOO_LARGE: "The body exceeds 16 KiB, or that of a batch 20 MiB.",
  UNSUPPORTED_MEDIA_TYPE: "The body is not `application/json`, nor another type that the endpoint takes.",
  QUALIFIED_CONFIRMATION_REFUSED:
    "The BZSt refuses to confirm this VAT ID to this requester; the message has its code. The request is not charged.",
  IDEMPOTENCY_KEY_REUSED:
    "Another request was sent with the same `Idempotency-Key` before, or a registration more than 24 hours ago; take a new key for a new request.",
  RATE_LIMIT_EXCEEDED:
    "A limit is reached: calls per minute, a paid plan's month, or registrations, signups, failed logins or keys; retry after `Retry-After` seconds.",
  REQUEST_HEADER_FIELDS_TOO_LARGE: "Path and headers together exceed 32 KiB.",
  INTERNAL_ERROR: "A fault of the service; report the `request_id` to the operator.",
  EVIDENCE_ALTERED: "Stored evidence differs from what was signed, so it is not served; report the `request_id` to the operator.",
  SOURCE_UNAVAILABLE: "No source answers, which says nothing about the VAT ID; retry after `Retry-After` seconds.",
  SERVICE_UNAVAILABLE: "The database is unreachable or the service is overloaded; retry after `Retry-After` seconds."
} as const satisfies Record<ErrorCode, string>

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
