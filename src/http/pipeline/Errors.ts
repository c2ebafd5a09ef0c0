/** The one error body, its codes and their statuses (rules 40, 44, 45). Nothing else in the service knows statuses. */
import { Clock, DateTime, Effect, MutableRef, Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import type { InvalidAccessToken } from "#domain/accounts/AccessTokens.ts"
import type { ApiKeyNotFound, InvalidToken, TokenExpired } from "#domain/accounts/Account.ts"
import type { ApiKeyNotClaimable, UnknownApiKey } from "#domain/accounts/ClaimApiKey.ts"
import type { EmailTaken } from "#domain/accounts/AccountStore.ts"
import type { InvalidAuditorToken } from "#domain/audit/Auditors.ts"
import type { NotInLog, NotSignedYet } from "#domain/audit/AuditTrail.ts"
import type {
  ApiKeyRequired,
  ConfirmationUnsupported,
  InvalidRequester,
  PaidPlanRequired
} from "#domain/receipts/Confirmation.ts"
import type { ConfirmationRefusal } from "#domain/receipts/ConfirmationSource.ts"
import type { DisposableEmail } from "#domain/email/EmailAddress.ts"
import type { InvalidApiKey } from "#domain/callers/Identity.ts"
import type { WrongPassword } from "#domain/login/ChangePassword.ts"
import type { EmailNotVerified, WrongCredentials } from "#domain/login/LogIn.ts"
import type { QuotaExceeded } from "#domain/callers/Metering.ts"
import type { CommonPassword, PasswordsBusy } from "#domain/login/Passwords.ts"
import { PlanName } from "#domain/callers/Plan.ts"
import type { RateLimitExceeded } from "#domain/callers/RateLimits.ts"
import type { PdfUnavailable } from "#domain/receipts/document/ReceiptPdf.ts"
import type { ReceiptLinkNotFound } from "#domain/receipts/ReceiptLinks.ts"
import type { ReceiptErased, ReceiptNotFound } from "#domain/receipts/ReceiptReader.ts"
import { RequestContext } from "#domain/kernel/RequestContext.ts"
import type { SourcesUnavailable } from "#domain/vat/Sources.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import type { InvalidVatId } from "#domain/vat/VatId.ts"
import type { InvalidCursor } from "#http/wire/Cursor.ts"
import { ResponseHints } from "#http/pipeline/ResponseHints.ts"
import { Site, type SiteSettings } from "#http/pipeline/SiteSettings.ts"
import { Timestamp } from "#http/wire/Timestamp.ts"

/** Every code with its status. */
export const statusOf = {
  VALIDATION_ERROR: 400,
  INVALID_VAT_ID: 400,
  INVALID_REQUESTER_VAT_ID: 400,
  QUALIFIED_CONFIRMATION_UNSUPPORTED: 400,
  DISPOSABLE_EMAIL: 400,
  INVALID_TOKEN: 400,
  TOKEN_EXPIRED: 400,
  UNAUTHORIZED: 401,
  PAYMENT_REQUIRED: 402,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  REQUEST_TIMEOUT: 408,
  CONFLICT: 409,
  API_KEY_NOT_CLAIMABLE: 409,
  RECEIPT_ERASED: 410,
  PAYLOAD_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  QUALIFIED_CONFIRMATION_REFUSED: 422,
  RATE_LIMIT_EXCEEDED: 429,
  REQUEST_HEADER_FIELDS_TOO_LARGE: 431,
  INTERNAL_ERROR: 500,
  EVIDENCE_ALTERED: 500,
  SOURCE_UNAVAILABLE: 503,
  SERVICE_UNAVAILABLE: 503
} as const

export type ErrorCode = keyof typeof statusOf

/** One field that was refused, and why. */
export const FieldError = Schema.Struct({ field: Schema.String, message: Schema.String })
export type FieldError = typeof FieldError.Type

/** What a plan does not allow, and how to get more. */
export const PlanDetails = Schema.Struct({
  plan: PlanName.annotate({ description: "The plan of the API key" }),
  limit: Schema.Int.annotate({ description: "Validations per month of the plan" }),
  resets_at: Schema.NullOr(Timestamp).annotate({ description: "End of the month; null if waiting does not help" }),
  upgrade_url: Schema.String.annotate({ description: "Link to larger plans", format: "uri" }),
  contact: Schema.NullOr(Schema.String).annotate({
    description: "The operator's address, as a mailto: or https: URI; null if none is published"
  })
})
export type PlanDetails = typeof PlanDetails.Encoded

/** What stays of an erased receipt. */
export const ErasedDetails = Schema.Struct({
  position: Schema.Int.annotate({ description: "Position of its event in the log" }),
  proof: Schema.NullOr(Schema.String).annotate({
    description: "The proof that the receipt was issued (c2sp.org/tlog-proof); null if the log is not signed"
  })
})
export type ErasedDetails = typeof ErasedDetails.Encoded

/** The body of errors with one of these codes. */
export const bodyWith = <const Codes extends ReadonlyArray<ErrorCode>>(codes: Codes) =>
  Schema.Struct({
    error: Schema.Struct({
      code: Schema.Literals(codes).annotate({ description: "The error, for programs; later versions may add codes" }),
      message: Schema.String.annotate({
        description: "The error, for people; the wording may change",
        examples: ["A VAT ID starts with the prefix of an EU member state, for example DE, FR or EL, or with XI"]
      }),
      request_id: Schema.String.annotate({
        description: "Equal to the response header X-Request-Id",
        examples: ["01a20419-04ae-76a0-8ca8-7e1e53bc6219"]
      }),
      details: Schema.optionalKey(
        Schema.Union([Schema.Array(FieldError), PlanDetails, ErasedDetails]).annotate({
          description:
            "With VALIDATION_ERROR the invalid fields; if the plan refuses the call, its limit and a link to larger plans; of an erased receipt, its proof"
        })
      )
    })
  })

/** The same, for some of the codes of one status. */
export const errorBody = <const Codes extends ReadonlyArray<ErrorCode>>(status: number, codes: Codes) =>
  bodyWith(codes).annotate({ httpApiStatus: status, description: codes.join(", ") })

/** What a request with a body may be refused for, whatever is in it. */
export const bodyRefusals = [errorBody(413, ["PAYLOAD_TOO_LARGE"]), errorBody(415, ["UNSUPPORTED_MEDIA_TYPE"])] as const

export interface Problem {
  readonly code: ErrorCode
  readonly message: string
  readonly retryAfterSeconds?: number
  readonly details?: ReadonlyArray<FieldError> | PlanDetails | ErasedDetails
}

/** Status, headers and JSON of an error. */
const partsOf = ({ code, details, message, retryAfterSeconds }: Problem, requestId: string) => {
  const headers: Record<string, string> = retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) }
  const json = { error: { code, message, request_id: requestId, ...(details === undefined ? {} : { details }) } }
  return { status: statusOf[code], headers, json }
}

/** Requests that Node's HTTP server refuses before the router sees them. */
const unroutable = {
  BadRequest: { code: "VALIDATION_ERROR", message: "The request is not valid HTTP" },
  Connect: { code: "METHOD_NOT_ALLOWED", message: "CONNECT is not supported" },
  HeadersTooLarge: {
    code: "REQUEST_HEADER_FIELDS_TOO_LARGE",
    message: "The request line and headers have at most 32 KiB together"
  },
  TimedOut: { code: "REQUEST_TIMEOUT", message: "The request did not arrive in time" }
} as const satisfies Record<string, Problem>

/** Status, headers and body of the response to such a request, for code that runs no effects. */
export const unroutableResponse = (reason: keyof typeof unroutable, requestId: string) => {
  const { headers, json, status } = partsOf(unroutable[reason], requestId)
  const allow = reason === "Connect" ? { allow: "GET, HEAD, POST, DELETE" } : {}
  const own = {
    "content-type": "application/json",
    "x-request-id": requestId,
    "x-content-type-options": "nosniff",
    "cache-control": "no-store"
  }
  return { status, headers: { ...headers, ...allow, ...own }, body: JSON.stringify(json) }
}

/** The response of an error; `more` are headers to add. */
export const toResponse = Effect.fnUntraced(function* (problem: Problem, more: Readonly<Record<string, string>> = {}) {
  const { requestId } = yield* RequestContext
  const { headers, json, status } = partsOf(problem, requestId)
  return HttpServerResponse.jsonUnsafe(json, { status, headers: { ...more, ...headers } })
})

/** The response to a method that a path does not have. */
export const methodNotAllowed = (method: string, allowed: ReadonlyArray<string>) =>
  toResponse({ code: "METHOD_NOT_ALLOWED", message: `${method} is not allowed here` }, { allow: allowed.join(", ") })

/** Every failure of a use case that a caller can do something about. */
export type Failure =
  | ApiKeyNotClaimable
  | ApiKeyNotFound
  | ApiKeyRequired
  | CommonPassword
  | ConfirmationRefusal
  | ConfirmationUnsupported
  | DisposableEmail
  | EmailNotVerified
  | EmailTaken
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
  | SourcesUnavailable
  | StoreUnavailable
  | TokenExpired
  | UnknownApiKey
  | WrongCredentials
  | WrongPassword

const codeOf = {
  ApiKeyNotClaimable: "API_KEY_NOT_CLAIMABLE",
  ApiKeyNotFound: "NOT_FOUND",
  ApiKeyRequired: "UNAUTHORIZED",
  CommonPassword: "VALIDATION_ERROR",
  ConfirmationRefusal: "QUALIFIED_CONFIRMATION_REFUSED",
  ConfirmationUnsupported: "QUALIFIED_CONFIRMATION_UNSUPPORTED",
  DisposableEmail: "DISPOSABLE_EMAIL",
  EmailNotVerified: "UNAUTHORIZED",
  EmailTaken: "CONFLICT",
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
  SourcesUnavailable: "SOURCE_UNAVAILABLE",
  StoreUnavailable: "SERVICE_UNAVAILABLE",
  TokenExpired: "TOKEN_EXPIRED",
  UnknownApiKey: "NOT_FOUND",
  WrongCredentials: "UNAUTHORIZED",
  WrongPassword: "UNAUTHORIZED"
} as const satisfies Record<Exclude<Failure["_tag"], "QuotaExceeded">, ErrorCode>

/** Seconds after which a caller may find the database back, a place in the queue, or another replica. */
const retryAfterSeconds = 2

/** What is told of a request that takes longer than a service that stops can wait. */
export const stopping: Problem = { code: "SERVICE_UNAVAILABLE", message: "The service is about to stop", retryAfterSeconds }

/** What is told where evidence is not what was signed. What it is, is for the log alone. */
export const evidenceAltered: Problem = {
  code: "EVIDENCE_ALTERED",
  message: "What is stored is not what was signed, so it is not served; the operator is told"
}

/** What is told of a request for which there is no room beside all others. */
export const tooMuchToDo: Problem = {
  code: "SERVICE_UNAVAILABLE",
  message: "There is too much to do at the moment",
  retryAfterSeconds
}

/** What a failure is told as. The reason why the database did not serve is for the log alone. */
export const problemOf = Effect.fnUntraced(function* (failure: Failure) {
  if (failure._tag === "StoreUnavailable") MutableRef.set((yield* ResponseHints).refusal, failure)
  switch (failure._tag) {
    case "QuotaExceeded":
      return yield* quotaProblem(failure)
    case "PaidPlanRequired": {
      const details = planDetails(yield* Site, failure, null)
      return { code: codeOf[failure._tag], message: `${failure.message}: ${details.upgrade_url}`, details } satisfies Problem
    }
    case "CommonPassword": {
      const { field, message } = failure
      return { code: codeOf[failure._tag], message: `${field}: ${message}`, details: [{ field, message }] } satisfies Problem
    }
    case "RateLimitExceeded":
      return rateLimitProblem(failure)
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
  resets_at: resetsAt === null ? null : DateTime.formatIso(resetsAt),
  upgrade_url: upgradeUrl,
  contact
})

/** Rule 40: what is used up is told apart by who used it. */
const quotaProblem = Effect.fnUntraced(function* ({ message, periodEnd, plan, standing }: QuotaExceeded) {
  if (periodEnd === null || plan === "anonymous")
    return { code: "UNAUTHORIZED", message: `${message}. Get a free API key: POST /v1/register` } satisfies Problem
  const details = planDetails(yield* Site, { limit: standing.usage.limit, plan }, periodEnd)
  const problem = { message: `${message} for this month. Upgrade: ${details.upgrade_url}`, details }
  if (plan === "free") return { code: "PAYMENT_REQUIRED", ...problem } satisfies Problem
  // The period of the call may be over by now.
  const seconds = (DateTime.toEpochMillis(periodEnd) - (yield* Clock.currentTimeMillis)) / 1000
  return { code: "RATE_LIMIT_EXCEEDED", ...problem, retryAfterSeconds: Math.max(1, Math.ceil(seconds)) } satisfies Problem
})

/** The response to a failure of a use case. */
export const failureResponse = (failure: Failure) => Effect.flatMap(problemOf(failure), (problem) => toResponse(problem))

/** Turns the failures of a use case into responses. */
export const respond = <A, E extends Failure, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.matchEffect(effect, { onSuccess: (value) => Effect.succeed(value), onFailure: failureResponse })
