/** Defines the error body and its codes (rules 40, 44, 45). No other module assigns HTTP statuses to errors. */
import { Effect, Schema, Struct } from "effect"
import { HttpServerResponse } from "effect/http"
import { PlanName } from "#domain/callers/PlanLimits.ts"
import { RequestContext } from "#domain/kernel/RequestContext.ts"
import { Timestamp } from "#http/wire/Timestamp.ts"

/** The HTTP status of each error code, and its meaning for callers, at any endpoint. */
export const errors = {
  VALIDATION_ERROR: [400, "The request is malformed, or a field is invalid; `details` names each field."],
  INVALID_VAT_ID: [
    400,
    "The text is not in the format of a VAT ID of an EU member state or of Northern Ireland; no source was called."
  ],
  INVALID_REQUESTER_VAT_ID: [
    400,
    "`requester_vat_id` is required but missing, or it is no well-formed VAT ID that may be the requester. `message` names what is allowed."
  ],
  QUALIFIED_CONFIRMATION_UNSUPPORTED: [
    400,
    "The service issues no qualified confirmations for VAT IDs of this country; validate without company data."
  ],
  DISPOSABLE_EMAIL: [400, "The address belongs to a provider of disposable addresses."],
  INVALID_TOKEN: [400, "The token of the mail is unknown or was already used."],
  TOKEN_EXPIRED: [
    400,
    "The token of the mail has expired. A token that confirms an address is valid for 24 hours, one that sets a password for one hour."
  ],
  UNAUTHORIZED: [
    401,
    "The API key, token or password is missing or wrong, the email address is not confirmed, or the free validations without a key are used up."
  ],
  PAYMENT_REQUIRED: [
    402,
    "The monthly quota of the free plan is used up, or the request needs a paid plan; `details` has the plan's limit, the end of the month and a link to larger plans."
  ],
  NOT_FOUND: [404, "The path, or the key, receipt, validation or batch in it, does not exist or belongs to another caller."],
  METHOD_NOT_ALLOWED: [405, "The path does not support this method; the header `Allow` lists the supported ones."],
  REQUEST_TIMEOUT: [
    408,
    "The request did not arrive completely within 30 seconds, or less than 20 KiB of its body arrived in 5 seconds."
  ],
  CONFLICT: [
    409,
    "An account with this email address already exists, or the API key of a repeated registration has ended; the message says which."
  ],
  API_KEY_NOT_CLAIMABLE: [
    409,
    "The API key belongs to an account with a login, or another key of your account starts, or started, with the same 12 characters. The message says which."
  ],
  API_KEY_REPLACED: [
    409,
    "The API key was replaced by a rotation. It validates and reads until it expires, but changes nothing else."
  ],
  IDEMPOTENCY_IN_PROGRESS: [
    409,
    "An earlier request with the same `Idempotency-Key` is still in progress; repeat yours after `Retry-After` seconds to get the same answer."
  ],
  RECEIPT_ERASED: [
    410,
    "The personal data of the receipt was erased, after its retention period or on request; `details` has the proof that it was issued."
  ],
  PAYLOAD_TOO_LARGE: [413, "The body exceeds 16 KiB; the limit of a batch is 20 MiB."],
  UNSUPPORTED_MEDIA_TYPE: [
    415,
    "The endpoint does not accept the media type of the body; send `application/json` or another type that the operation lists."
  ],
  QUALIFIED_CONFIRMATION_REFUSED: [
    422,
    "The BZSt refuses to confirm this VAT ID to this requester; the message contains the BZSt's status code. The request is not charged."
  ],
  IDEMPOTENCY_KEY_REUSED: [
    422,
    "The `Idempotency-Key` was used before, for a different request or for a registration more than 24 hours ago; use a new value for a new request."
  ],
  RATE_LIMIT_EXCEEDED: [
    429,
    "A limit is reached: calls per minute, the monthly quota of a paid plan, registrations, signups, failed logins, API keys or uploads in progress; retry after `Retry-After` seconds."
  ],
  REQUEST_HEADER_FIELDS_TOO_LARGE: [431, "The path and the headers together exceed 32 KiB."],
  INTERNAL_ERROR: [500, "A fault of the service; report the `request_id` to the operator."],
  EVIDENCE_ALTERED: [
    500,
    "The stored evidence differs from the signed evidence, so it is not served; report the `request_id` to the operator."
  ],
  SOURCE_UNAVAILABLE: [503, "No source is available. This says nothing about the VAT ID; retry after `Retry-After` seconds."],
  SERVICE_UNAVAILABLE: [
    503,
    "The database is unreachable, the service is overloaded or stopping, it reads its maximum of uploads, the event to prove is not signed yet, or a PDF cannot be created now; retry after `Retry-After` seconds."
  ]
} as const

export type ErrorCode = keyof typeof errors
export const codes = Struct.keys(errors)

export const statusOf = <Code extends ErrorCode>(code: Code): (typeof errors)[Code][0] => errors[code][0]

/** One invalid field and the reason. */
export const FieldError = Schema.Struct({ field: Schema.String, message: Schema.String })
export type FieldError = typeof FieldError.Type

/** Details of an error for which a larger plan is the remedy: the limit of the caller's plan, and where to get a larger plan. */
export const PlanDetails = Schema.Struct({
  plan: PlanName.annotate({ description: "The plan of the API key" }),
  limit: Schema.Int.annotate({ description: "Validations per month that the plan includes" }),
  resets_at: Schema.NullOr(Timestamp).annotate({
    description: "End of the month, when the quota is renewed; null if waiting does not help"
  }),
  upgrade_url: Schema.String.annotate({ description: "Link to larger plans", format: "uri" }),
  contact: Schema.NullOr(Schema.String).annotate({
    description: "Address of the operator, as a mailto: or https: URI; null if the operator publishes none"
  })
})
export type PlanDetails = typeof PlanDetails.Type

/** Details of the error for an erased receipt: the position of its event in the log, and the proof that the receipt was issued. */
export const ErasedDetails = Schema.Struct({
  position: Schema.Int.annotate({ description: "Position of the receipt's event in the log" }),
  proof: Schema.NullOr(Schema.String).annotate({
    description: "The proof that the receipt was issued (c2sp.org/tlog-proof); null if the log is not signed"
  })
})
export type ErasedDetails = typeof ErasedDetails.Type

/** Returns the schema of an error body that has one of these codes. */
export const bodyWith = <const Codes extends ReadonlyArray<ErrorCode>>(codes: Codes) =>
  Schema.Struct({
    error: Schema.Struct({
      code: Schema.Literals(codes).annotate({ description: "The kind of error, for programs; later versions may add codes" }),
      message: Schema.String.annotate({
        description: "The fault and the remedy, for people; the wording may change",
        examples: ["A VAT ID starts with the prefix of an EU member state, for example DE, FR or EL, or with XI"]
      }),
      request_id: Schema.String.annotate({
        description: "Equal to the response header X-Request-Id",
        examples: ["01a20419-04ae-76a0-8ca8-7e1e53bc6219"]
      }),
      details: Schema.optionalKey(
        Schema.Union([Schema.Array(FieldError), PlanDetails, ErasedDetails]).annotate({
          description:
            "VALIDATION_ERROR: the invalid fields. A limit of the plan: that limit and a link to larger plans. RECEIPT_ERASED: the proof that the receipt was issued"
        })
      )
    })
  })

/**
 * Returns the schema of the error responses of an endpoint that have one HTTP status. `codes` are the codes that the endpoint returns
 * with this status.
 */
export const errorBody = <const Code extends ErrorCode>(code: Code, ...more: ReadonlyArray<CodeWith<(typeof errors)[Code][0]>>) =>
  bodyWith([code, ...more]).annotate({ httpApiStatus: statusOf(code), description: [code, ...more].join(", ") })

/** The codes with an HTTP status. */
type CodeWith<Status> = { [Code in ErrorCode]: (typeof errors)[Code][0] extends Status ? Code : never }[ErrorCode]

/** The errors of every endpoint with a request body: too large, or an unsupported media type. */
export const bodyRefusals = [errorBody("PAYLOAD_TOO_LARGE"), errorBody("UNSUPPORTED_MEDIA_TYPE")] as const

/** The errors of every endpoint that authenticates its caller. */
export const authenticationErrors = [errorBody("UNAUTHORIZED"), errorBody("SERVICE_UNAVAILABLE")] as const

export interface Problem {
  readonly code: ErrorCode
  readonly message: string
  readonly retryAfterSeconds?: number
  readonly details?: ReadonlyArray<FieldError> | PlanDetails | ErasedDetails
}

const encodeBody = Schema.encodeSync(bodyWith(codes))

/** Returns status, headers and JSON body of an error's response. */
const partsOf = ({ code, details, message, retryAfterSeconds }: Problem, requestId: string) => {
  const headers: Record<string, string> = retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) }
  const json = encodeBody({ error: { code, message, request_id: requestId, ...(details === undefined ? {} : { details }) } })
  return { status: statusOf(code), headers, json }
}

/** Errors of requests that Node's HTTP server rejects before they reach the router. */
const unroutable = {
  BadRequest: { code: "VALIDATION_ERROR", message: "The request is not valid HTTP" },
  Connect: { code: "METHOD_NOT_ALLOWED", message: "CONNECT is not supported" },
  HeadersTooLarge: {
    code: "REQUEST_HEADER_FIELDS_TOO_LARGE",
    message: "Path and headers together exceed 32 KiB"
  },
  TimedOut: {
    code: "REQUEST_TIMEOUT",
    message: "The request did not arrive completely in time, or its body arrived too slowly; send it again"
  }
} as const satisfies Record<string, Problem>

/**
 * Returns status, headers and body of the response to a request that Node's HTTP server rejects. It is not an Effect, because event
 * handlers of Node call it outside of Effect.
 */
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

/** Returns the response of an error; `more` are additional headers. */
export const toResponse = Effect.fnUntraced(function* (problem: Problem, more: Readonly<Record<string, string>> = {}) {
  const { requestId } = yield* RequestContext
  const { headers, json, status } = partsOf(problem, requestId)
  return HttpServerResponse.jsonUnsafe(json, { status, headers: { ...more, ...headers } })
})

/** Returns the 405 response for a method that a path does not support. */
export const methodNotAllowed = (method: string, allowed: ReadonlyArray<string>) =>
  toResponse(
    { code: "METHOD_NOT_ALLOWED", message: `This path does not support ${method}; it supports ${allowed.join(", ")}` },
    { allow: allowed.join(", ") }
  )

/** Retry-After of an overload or a database outage, in seconds. */
export const retryAfterSeconds = 2

/** The error of a request that is still in flight when the grace period of a stopping service ends. */
export const stopping: Problem = {
  code: "SERVICE_UNAVAILABLE",
  message: "The service is stopping; retry after 2 seconds",
  retryAfterSeconds
}

/** The error for stored evidence that differs from its signed form. The differences are logged and not sent. */
export const evidenceAltered: Problem = {
  code: "EVIDENCE_ALTERED",
  message: "The stored evidence differs from the signed evidence, so it is not served; the operator is alerted"
}

/** The error for a request that exceeds the maximum number of requests in flight. */
export const overloaded: Problem = {
  code: "SERVICE_UNAVAILABLE",
  message: "The server is overloaded; retry after 2 seconds",
  retryAfterSeconds
}
