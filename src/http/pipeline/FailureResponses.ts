/** Maps the failures of use cases to error responses (rules 40, 44). */
import { Clock, DateTime, Effect, MutableRef } from "effect"
import type { CommonPassword } from "#domain/accounts/login/Passwords.ts"
import type { QuotaExceeded } from "#domain/callers/Metering.ts"
import { needsLargerPlan, type PaidPlanRequired } from "#domain/callers/PaymentRequired.ts"
import type { RateLimitExceeded } from "#domain/callers/RateLimiter.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import type { PdfUnavailable } from "#domain/receipts/document/ReceiptPdf.ts"
import type { ReceiptErased } from "#domain/receipts/ReceiptReader.ts"
import type { SourcesUnavailable } from "#domain/vat/Sources.ts"
import type { InvalidCursor } from "#http/wire/Cursor.ts"
import { type ErrorCode, type PlanDetails, type Problem, retryAfterSeconds, toResponse } from "#http/pipeline/Errors.ts"
import { ResponseHints } from "#http/pipeline/ResponseHints.ts"
import { Site, type SiteSettings } from "#http/pipeline/SiteSettings.ts"

/** The error code of each failure by its tag. The code of QuotaExceeded depends on the plan: see `quotaProblem`. */
const codeOf = {
  ApiKeyNotClaimable: "API_KEY_NOT_CLAIMABLE",
  AlreadyRecorded: "IDEMPOTENCY_IN_PROGRESS",
  ApiKeyNotFound: "NOT_FOUND",
  ApiKeyReplaced: "API_KEY_REPLACED",
  ApiKeyRequired: "UNAUTHORIZED",
  BatchNotFound: "NOT_FOUND",
  CommonPassword: "VALIDATION_ERROR",
  ConfirmationRefusal: "QUALIFIED_CONFIRMATION_REFUSED",
  ConfirmationUnsupported: "QUALIFIED_CONFIRMATION_UNSUPPORTED",
  DisposableEmail: "DISPOSABLE_EMAIL",
  EmailNotVerified: "UNAUTHORIZED",
  EmailTaken: "CONFLICT",
  IdempotencyInProgress: "IDEMPOTENCY_IN_PROGRESS",
  IdempotencyKeyReused: "IDEMPOTENCY_KEY_REUSED",
  InvalidAccessToken: "UNAUTHORIZED",
  InvalidApiKey: "UNAUTHORIZED",
  InvalidAuditorToken: "UNAUTHORIZED",
  InvalidCursor: "VALIDATION_ERROR",
  InvalidRequester: "INVALID_REQUESTER_VAT_ID",
  InvalidToken: "INVALID_TOKEN",
  InvalidVatId: "INVALID_VAT_ID",
  NotInLog: "NOT_FOUND",
  NotSignedYet: "SERVICE_UNAVAILABLE",
  PaidPlanRequired: "PAYMENT_REQUIRED",
  PasswordsBusy: "SERVICE_UNAVAILABLE",
  PdfUnavailable: "SERVICE_UNAVAILABLE",
  RateLimitExceeded: "RATE_LIMIT_EXCEEDED",
  ReceiptErased: "RECEIPT_ERASED",
  ReceiptLinkNotFound: "NOT_FOUND",
  ReceiptNotFound: "NOT_FOUND",
  RegisteredKeyEnded: "CONFLICT",
  SourcesUnavailable: "SOURCE_UNAVAILABLE",
  StoreUnavailable: "SERVICE_UNAVAILABLE",
  TokenExpired: "TOKEN_EXPIRED",
  UnknownApiKey: "NOT_FOUND",
  UploadsBusy: "SERVICE_UNAVAILABLE",
  ValidationNotFound: "NOT_FOUND",
  WrongCredentials: "UNAUTHORIZED",
  WrongPassword: "UNAUTHORIZED"
} as const satisfies Record<string, ErrorCode>

/** Retry-After of the failures that do not have it, in seconds. */
const waits: { readonly [Tag in keyof typeof codeOf]?: number } = {
  AlreadyRecorded: 1,
  IdempotencyInProgress: 1,
  NotSignedYet: retryAfterSeconds,
  PasswordsBusy: retryAfterSeconds,
  StoreUnavailable: retryAfterSeconds,
  UploadsBusy: retryAfterSeconds
}

/** The failures that have more than a message for the response. */
type Detailed =
  | CommonPassword
  | InvalidCursor
  | PaidPlanRequired
  | PdfUnavailable
  | QuotaExceeded
  | RateLimitExceeded
  | ReceiptErased
  | SourcesUnavailable
  | StoreUnavailable

/** All failures of use cases that a caller can react to. */
export type Failure = Detailed | { readonly _tag: Exclude<keyof typeof codeOf, Detailed["_tag"]>; readonly message: string }

/** Returns the error for a failure. The cause of a database outage is kept for the request log and not sent. */
export const problemOf = Effect.fnUntraced(function* (failure: Failure) {
  if (failure._tag === "QuotaExceeded") return yield* quotaProblem(failure)
  if (failure._tag === "StoreUnavailable") MutableRef.set((yield* ResponseHints).refusal, failure)
  const code = codeOf[failure._tag]
  switch (failure._tag) {
    case "PaidPlanRequired": {
      const details = planDetails(yield* Site, failure, null)
      return { code, message: `${failure.message}: ${details.upgrade_url}`, details } satisfies Problem
    }
    case "CommonPassword":
    case "InvalidCursor": {
      const { field, message } = failure
      return { code, message: `${field}: ${message}`, details: [{ field, message }] } satisfies Problem
    }
    default: {
      const wait = "retryAfterSeconds" in failure ? failure.retryAfterSeconds : waits[failure._tag]
      return { code, message: failure.message, ...(wait === undefined ? {} : { retryAfterSeconds: wait }) } satisfies Problem
    }
  }
})

const planDetails = (
  { contact, upgradeUrl }: SiteSettings,
  { limit, plan }: Pick<PlanDetails, "limit" | "plan">,
  resetsAt: DateTime.Utc | null
): PlanDetails => ({
  plan,
  limit,
  resets_at: resetsAt,
  upgrade_url: upgradeUrl,
  contact
})

/** Returns the error for a used-up quota (rule 40). */
const quotaProblem = Effect.fnUntraced(function* (failure: QuotaExceeded) {
  const { message, periodEnd, plan, standing } = failure
  if (periodEnd === null || plan === "anonymous")
    return { code: "UNAUTHORIZED", message: `${message}. Get a free API key: POST /v1/register` } satisfies Problem
  const details = planDetails(yield* Site, { limit: standing.usage.limit, plan }, periodEnd)
  const problem = { message: `${message} for this month. Upgrade: ${details.upgrade_url}`, details }
  if (needsLargerPlan(failure)) return { code: "PAYMENT_REQUIRED", ...problem } satisfies Problem
  // The number is negative if the month has ended since the call was counted.
  const seconds = (DateTime.toEpochMillis(periodEnd) - (yield* Clock.currentTimeMillis)) / 1000
  return { code: "RATE_LIMIT_EXCEEDED", ...problem, retryAfterSeconds: Math.max(1, Math.ceil(seconds)) } satisfies Problem
})

/** Returns the error response for a failure. */
export const failureResponse = (failure: Failure) => Effect.flatMap(problemOf(failure), (problem) => toResponse(problem))

/** Converts the failures of a use case to error responses. */
export const respond = <A, E extends Failure, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.matchEffect(effect, { onSuccess: (value) => Effect.succeed(value), onFailure: failureResponse })
