/** Explains the error codes in the OpenAPI document. */
import { Record as Rec } from "effect"
import { bodyWith, codes, type ErrorCode, statusOf } from "#http/pipeline/Errors.ts"

/** The meaning of each error code for callers, at any endpoint. */
const meanings = {
  VALIDATION_ERROR: "The request is malformed, or a field is invalid; `details` names each field.",
  INVALID_VAT_ID: "The text is not in the format of a VAT ID of an EU member state or of Northern Ireland; no source was called.",
  INVALID_REQUESTER_VAT_ID: "`requester_vat_id` is required but missing, or it is not a well-formed German VAT ID.",
  QUALIFIED_CONFIRMATION_UNSUPPORTED:
    "The service issues no qualified confirmations for VAT IDs of this country; validate without company data.",
  DISPOSABLE_EMAIL: "The address belongs to a provider of disposable addresses.",
  INVALID_TOKEN: "The token of the mail is unknown or was already used.",
  TOKEN_EXPIRED:
    "The token of the mail has expired. A token that confirms an address is valid for 24 hours, one that sets a password for one hour.",
  UNAUTHORIZED:
    "The API key, token or password is missing or wrong, the email address is not confirmed, or the free validations without a key are used up.",
  PAYMENT_REQUIRED:
    "The monthly quota of the free plan is used up, or the request needs a paid plan; `details` has the plan's limit, the end of the month and a link to larger plans.",
  NOT_FOUND: "The path, or the key, receipt, validation or batch in it, does not exist or belongs to another caller.",
  METHOD_NOT_ALLOWED: "The path does not support this method; the header `Allow` lists the supported ones.",
  REQUEST_TIMEOUT:
    "The request did not arrive completely within 30 seconds, or less than 20 KiB of its body arrived in 5 seconds.",
  CONFLICT:
    "An account with this email address already exists, or the API key of a repeated registration has ended; the message says which.",
  API_KEY_NOT_CLAIMABLE:
    "The API key belongs to an account with a login, or another key of your account starts, or started, with the same 12 characters. The message says which.",
  API_KEY_REPLACED: "The API key was replaced by a rotation. It validates and reads until it expires, but changes nothing else.",
  IDEMPOTENCY_IN_PROGRESS:
    "An earlier request with the same `Idempotency-Key` is still in progress; repeat yours after `Retry-After` seconds to get the same answer.",
  RECEIPT_ERASED:
    "The personal data of the receipt was erased, after its retention period or on request; `details` has the proof that it was issued.",
  PAYLOAD_TOO_LARGE: "The body exceeds 16 KiB; the limit of a batch is 20 MiB.",
  UNSUPPORTED_MEDIA_TYPE:
    "The endpoint does not accept the media type of the body; send `application/json` or another type that the operation lists.",
  QUALIFIED_CONFIRMATION_REFUSED:
    "The BZSt refuses to confirm this VAT ID to this requester; the message contains the BZSt's status code. The request is not charged.",
  IDEMPOTENCY_KEY_REUSED:
    "The `Idempotency-Key` was used before, for a different request or for a registration more than 24 hours ago; use a new value for a new request.",
  RATE_LIMIT_EXCEEDED:
    "A limit is reached: calls per minute, the monthly quota of a paid plan, registrations, signups, failed logins, API keys or uploads in progress; retry after `Retry-After` seconds.",
  REQUEST_HEADER_FIELDS_TOO_LARGE: "The path and the headers together exceed 32 KiB.",
  INTERNAL_ERROR: "A fault of the service; report the `request_id` to the operator.",
  EVIDENCE_ALTERED:
    "The stored evidence differs from the signed evidence, so it is not served; report the `request_id` to the operator.",
  SOURCE_UNAVAILABLE: "No source is available. This says nothing about the VAT ID; retry after `Retry-After` seconds.",
  SERVICE_UNAVAILABLE:
    "The database is unreachable, the service is overloaded or stopping, it reads its maximum of uploads, the event to prove is not signed yet, or a PDF cannot be created now; retry after `Retry-After` seconds."
} as const satisfies Record<ErrorCode, string>

/** Returns the error codes that occur in a text, with their meanings, as a Markdown list. */
export const meaningsOf = (text: string): string => {
  const words = new Set(text.split(/\W+/u))
  return codes
    .filter((code) => words.has(code))
    .map((code) => `- \`${code}\`: ${meanings[code]}`)
    .join("\n")
}

/** All error codes with status and meaning as a Markdown table, for the introduction of the document. */
export const tableOfMeanings = [
  "| status | code | meaning |",
  "|---|---|---|",
  ...Rec.toEntries(meanings).map(([code, meaning]) => `| ${statusOf[code]} | \`${code}\` | ${meaning} |`)
].join("\n")

/** The schema of every error body, which is the component `Error` of the document. */
export const ErrorBody = bodyWith(codes).annotate({ identifier: "Error", description: "The body of every error" })
