/** Maps the failures of use cases to error responses (rules 40, 44). */
import { Clock, DateTime, Effect, MutableRef } from "effect"
import type { InvalidAccessToken } from "#domain/accounts/AccessTokens.ts"
import type { InvalidToken, TokenExpired } from "#domain/accounts/Account.ts"
import type { ApiKeyNotFound, ApiKeyReplaced } from "#domain/accounts/keys/RevokeApiKey.ts"
import type { ApiKeyNotClaimable, UnknownApiKey } from "#domain/accounts/keys/ClaimApiKey.ts"
import type { RegisteredKeyEnded } from "#domain/accounts/signup/RegisterAgent.ts"
import type { EmailTaken } from "#domain/accounts/AccountStore.ts"
import type { InvalidAuditorToken } from "#domain/audit/Auditors.ts"
import type { NotSignedYet } from "#domain/audit/AuditTrail.ts"
import type { NotInLog } from "#domain/log/NotInLog.ts"
import type {
  ApiKeyRequired,
  ConfirmationUnsupported,
  InvalidRequester,
  PaidPlanRequired
} from "#domain/receipts/ConfirmationRules.ts"
import type { ConfirmationRefusal } from "#domain/receipts/ConfirmationSource.ts"
import type { DisposableEmail } from "#domain/accounts/email/EmailAddress.ts"
import type { InvalidApiKey } from "#domain/callers/Identity.ts"
import type { WrongPassword } from "#domain/accounts/login/ChangePassword.ts"
import type { EmailNotVerified, WrongCredentials } from "#domain/accounts/login/LogIn.ts"
import type { AlreadyRecorded, QuotaExceeded } from "#domain/callers/Metering.ts"
import type { CommonPassword, PasswordsBusy } from "#domain/accounts/login/Passwords.ts"
import type { RateLimitExceeded } from "#domain/callers/RateLimiter.ts"
import type { IdempotencyInProgress, IdempotencyKeyReused } from "#domain/pending/IdempotencyRules.ts"
import type { BatchNotFound } from "#domain/pending/Batches.ts"
import type { UploadsBusy } from "#domain/pending/UploadPlaces.ts"
import type { ValidationNotFound } from "#domain/pending/PendingValidations.ts"
import type { PdfUnavailable } from "#domain/receipts/document/ReceiptPdf.ts"
import type { ReceiptLinkNotFound } from "#domain/receipts/ReceiptLinks.ts"
import type { ReceiptErased, ReceiptNotFound } from "#domain/receipts/ReceiptReader.ts"
import type { SourcesUnavailable } from "#domain/vat/Sources.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import type { InvalidVatId } from "#domain/vat/VatId.ts"
import type { InvalidCursor } from "#http/wire/Cursor.ts"
import { type ErrorCode, type PlanDetails, type Problem, retryAfterSeconds, toResponse } from "#http/pipeline/Errors.ts"
import { ResponseHints } from "#http/pipeline/ResponseHints.ts"
import { Site, type SiteSettings } from "#http/pipeline/SiteSettings.ts"

/** All failures of use cases that a caller can react to. */
export type Failure =
  | ApiKeyNotClaimable
  | AlreadyRecorded
  | ApiKeyNotFound
  | ApiKeyReplaced
  | ApiKeyRequired
  | BatchNotFound
  | CommonPassword
  | ConfirmationRefusal
  | ConfirmationUnsupported
  | DisposableEmail
  | EmailNotVerified
  | EmailTaken
  | IdempotencyInProgress
  | IdempotencyKeyReused
  | InvalidAccessToken
  | InvalidApiKey
  | InvalidAuditorToken
  | InvalidCursor
  | InvalidRequester
  | InvalidToken
  | InvalidVatId
  | NotInLog
  | NotSignedYet
  | PaidPlanRequired
  | PasswordsBusy
  | PdfUnavailable
  | QuotaExceeded
  | RateLimitExceeded
  | ReceiptErased
  | ReceiptLinkNotFound
  | ReceiptNotFound
  | RegisteredKeyEnded
  | SourcesUnavailable
  | StoreUnavailable
  | TokenExpired
  | UnknownApiKey
  | UploadsBusy
  | ValidationNotFound
  | WrongCredentials
  | WrongPassword

/** The error code of each failure. The code of QuotaExceeded depends on the plan: see `quotaProblem`. */
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
} as const satisfies Record<Exclude<Failure["_tag"], "QuotaExceeded">, ErrorCode>

/** Returns the error for a failure. The cause of a database outage is kept for the request log and not sent. */
export const problemOf = Effect.fnUntraced(function* (failure: Failure) {
  if (failure._tag === "StoreUnavailable") MutableRef.set((yield* ResponseHints).refusal, failure)
  switch (failure._tag) {
    case "QuotaExceeded":
      return yield* quotaProblem(failure)
    case "PaidPlanRequired": {
      const details = planDetails(yield* Site, failure, null)
      return { code: codeOf[failure._tag], message: `${failure.message}: ${details.upgrade_url}`, details } satisfies Problem
    }
    case "CommonPassword":
    case "InvalidCursor": {
      const { field, message } = failure
      return { code: codeOf[failure._tag], message: `${field}: ${message}`, details: [{ field, message }] } satisfies Problem
    }
    case "RateLimitExceeded":
      return rateLimitProblem(failure)
    case "AlreadyRecorded":
    case "IdempotencyInProgress":
      return { code: codeOf[failure._tag], message: failure.message, retryAfterSeconds: 1 } satisfies Problem
    case "PdfUnavailable":
    case "SourcesUnavailable":
      return {
        code: codeOf[failure._tag],
        message: failure.message,
        retryAfterSeconds: failure.retryAfterSeconds
      } satisfies Problem
    case "NotSignedYet":
    case "PasswordsBusy":
    case "StoreUnavailable":
    case "UploadsBusy":
      return { code: codeOf[failure._tag], message: failure.message, retryAfterSeconds } satisfies Problem
    default:
      return { code: codeOf[failure._tag], message: failure.message } satisfies Problem
  }
})

const rateLimitProblem = ({ _tag, message, retryAfterSeconds }: RateLimitExceeded): Problem => ({
  code: codeOf[_tag],
  message,
  retryAfterSeconds
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

/** Returns the error for a used-up quota (rule 40): 401 without a key, 402 on the free plan, 429 on a paid plan. */
const quotaProblem = Effect.fnUntraced(function* ({ message, periodEnd, plan, standing }: QuotaExceeded) {
  if (periodEnd === null || plan === "anonymous")
    return { code: "UNAUTHORIZED", message: `${message}. Get a free API key: POST /v1/register` } satisfies Problem
  const details = planDetails(yield* Site, { limit: standing.usage.limit, plan }, periodEnd)
  const problem = { message: `${message} for this month. Upgrade: ${details.upgrade_url}`, details }
  if (plan === "free") return { code: "PAYMENT_REQUIRED", ...problem } satisfies Problem
  // The number is negative if the month has ended since the call was counted.
  const seconds = (DateTime.toEpochMillis(periodEnd) - (yield* Clock.currentTimeMillis)) / 1000
  return { code: "RATE_LIMIT_EXCEEDED", ...problem, retryAfterSeconds: Math.max(1, Math.ceil(seconds)) } satisfies Problem
})

/** Returns the error response for a failure. */
export const failureResponse = (failure: Failure) => Effect.flatMap(problemOf(failure), (problem) => toResponse(problem))

/** Converts the failures of a use case to error responses. */
export const respond = <A, E extends Failure, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.matchEffect(effect, { onSuccess: (value) => Effect.succeed(value), onFailure: failureResponse })
