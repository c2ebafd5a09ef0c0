import type { Error as ErrorBody, ErrorCode } from "./types.ts"

/**
 * Codes of the client itself: no answer, no answer in time, an answer that is not the service's, an accepted validation that ended without
 * an answer of a source.
 */
export type ClientCode = "UNREACHABLE" | "TIMEOUT" | "UNEXPECTED_RESPONSE" | "EXPIRED" | "CANCELLED"

export interface Failure {
  readonly code: ErrorCode | ClientCode | (string & {})
  /** 0 without a response. */
  readonly status: number
  readonly message: string
  readonly requestId?: string | undefined
  readonly details?: ErrorBody["error"]["details"] | undefined
  readonly retryAfterSeconds?: number | undefined
}

/** Codes that a later, equal request can end. */
const retryable: ReadonlyArray<string> = [
  "REQUEST_TIMEOUT",
  "IDEMPOTENCY_IN_PROGRESS",
  "RATE_LIMIT_EXCEEDED",
  "INTERNAL_ERROR",
  "SOURCE_UNAVAILABLE",
  "SERVICE_UNAVAILABLE",
  "UNREACHABLE",
  "TIMEOUT",
  "EXPIRED"
]

/**
 * A call without a result. Decide by `code`. An outage is such an error: it says nothing about the VAT ID.
 * `retryable` tells whether the same call may succeed later, not before `retryAfterSeconds`.
 */
export class VatproofError extends Error {
  readonly code: Failure["code"]
  readonly status: number
  readonly retryable: boolean
  readonly requestId: string | undefined
  readonly details: Failure["details"]
  readonly retryAfterSeconds: number | undefined

  constructor({ code, details, message, requestId, retryAfterSeconds, status }: Failure) {
    super(`${code}: ${message}${requestId === undefined ? "" : ` (request ${requestId})`}`)
    this.name = "VatproofError"
    this.code = code
    this.status = status
    this.requestId = requestId
    this.details = details
    this.retryAfterSeconds = retryAfterSeconds
    this.retryable = retryable.includes(code) || (code === "UNEXPECTED_RESPONSE" && (status >= 500 || status === 429))
  }
}
