/** Defines the error body and its codes (rules 40, 44, 45). No other module assigns HTTP statuses to errors. */
import { Effect, Schema, Struct } from "effect"
import { HttpServerResponse } from "effect/http"
import { PlanName } from "#domain/callers/PlanLimits.ts"
import { RequestContext } from "#domain/kernel/RequestContext.ts"
import { Timestamp } from "#http/wire/Timestamp.ts"

/** The HTTP status of each error code. */
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
  API_KEY_REPLACED: 409,
  IDEMPOTENCY_IN_PROGRESS: 409,
  RECEIPT_ERASED: 410,
  PAYLOAD_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  QUALIFIED_CONFIRMATION_REFUSED: 422,
  IDEMPOTENCY_KEY_REUSED: 422,
  RATE_LIMIT_EXCEEDED: 429,
  REQUEST_HEADER_FIELDS_TOO_LARGE: 431,
  INTERNAL_ERROR: 500,
  EVIDENCE_ALTERED: 500,
  SOURCE_UNAVAILABLE: 503,
  SERVICE_UNAVAILABLE: 503
} as const

export type ErrorCode = keyof typeof statusOf
export const codes = Struct.keys(statusOf)

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
 * Returns the schema of an error response, for the declaration of an endpoint. `codes` are the error codes that the endpoint returns
 * with the HTTP status `status`.
 */
export const errorBody = <const Codes extends ReadonlyArray<ErrorCode>>(status: number, codes: Codes) =>
  bodyWith(codes).annotate({ httpApiStatus: status, description: codes.join(", ") })

/** The errors of every endpoint with a request body: too large, or an unsupported media type. */
export const bodyRefusals = [errorBody(413, ["PAYLOAD_TOO_LARGE"]), errorBody(415, ["UNSUPPORTED_MEDIA_TYPE"])] as const

/** The errors of every endpoint that authenticates its caller. */
export const authenticationErrors = [errorBody(401, ["UNAUTHORIZED"]), errorBody(503, ["SERVICE_UNAVAILABLE"])] as const

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
  return { status: statusOf[code], headers, json }
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
