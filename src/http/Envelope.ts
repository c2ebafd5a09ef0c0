/**
 * What every response has, whoever made it: the request's id, the caller's usage and window, and the one error body also for what no
 * endpoint answers: unknown routes, wrong methods, other media types, bodies that are too large, defects (DECISIONS 7, 11, 14).
 */
import { Cause, Effect, MutableRef } from "effect"
import { HttpRouter, HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Randomness } from "#domain/Randomness.ts"
import type { ServedRequest } from "#domain/RequestContext.ts"
import { nearLimit } from "#domain/Usage.ts"
import * as AnswerFromMemory from "#http/AnswerFromMemory.ts"
import * as Errors from "#http/Errors.ts"
import * as RequestTelemetry from "#http/RequestTelemetry.ts"
import { makeRequestScope, RequestScope, type CollectedHeaders } from "#http/RequestScope.ts"
import { allowedMethods } from "#http/Routes.ts"

/** An inbound id of this form is kept. */
const usableRequestId = /^[\w.-]{1,128}$/u

const make = Effect.gen(function* () {
  const random = yield* Randomness
  const fromMemory = yield* AnswerFromMemory.make
  const watched = yield* RequestTelemetry.make

  return (app: Effect.Effect<HttpServerResponse.HttpServerResponse, unknown, HttpServerRequest.HttpServerRequest>) =>
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const correlationId = yield* random.uuidV7
      const given = request.headers["x-request-id"]
      const requestId = given !== undefined && usableRequestId.test(given) ? given : correlationId
      const scope = makeRequestScope()
      return yield* watched(request, { requestId, correlationId }, scope, (served) =>
        fromMemory(request, app).pipe(
          Effect.catchCause((cause) => (Cause.hasInterruptsOnly(cause) ? Effect.failCause(cause) : responseOf(cause))),
          Effect.flatMap((response) =>
            isForeignError(response) ? problemFor(response.status, request) : Effect.succeed(response)
          ),
          Effect.flatMap((response) => withHeaders(response, served, scope)),
          Effect.provideService(RequestScope, scope)
        )
      )
    })
})

/** The middleware around all routes, known or not. */
export const layer = HttpRouter.middleware(make, { global: true })

/** An error that did not come from Errors.ts has a body of the library's making, or none. Pages are our own: the library makes plain text. */
const isForeignError = (response: HttpServerResponse.HttpServerResponse) =>
  response.status >= 400 && response.headers["content-type"] !== "application/json" && !isPage(response)

const responseOf = Effect.fnUntraced(function* (cause: Cause.Cause<unknown>) {
  const [response] = yield* HttpServerError.causeResponse(cause)
  if (response.status < 500) return response
  yield* Effect.logError("A request failed by a defect", cause)
  return yield* Errors.toResponse({ code: "INTERNAL_ERROR", message: "Something went wrong on our side" })
})

const problemFor = (status: number, request: HttpServerRequest.HttpServerRequest) => {
  const { method, path } = pathOf(request)
  const allowed = allowedMethods(path)
  switch (status) {
    case 404:
      if (allowed.length === 0) return Errors.toResponse({ code: "NOT_FOUND", message: nothingHere })
      if (allowed.includes(method)) return Errors.toResponse(undecodable(path))
      return Errors.toResponse(
        { code: "METHOD_NOT_ALLOWED", message: `${method} is not allowed here` },
        { allow: allowed.join(", ") }
      )
    case 413:
      return Errors.toResponse({ code: "PAYLOAD_TOO_LARGE", message: "A request body has at most 16 KiB" })
    case 415:
      return Errors.toResponse({ code: "UNSUPPORTED_MEDIA_TYPE", message: "Send the body as application/json" })
    case 400:
      return Errors.toResponse({ code: "VALIDATION_ERROR", message: "The request cannot be read" })
    default:
      return Errors.toResponse({ code: "INTERNAL_ERROR", message: "Something went wrong on our side" })
  }
}

const nothingHere = "There is nothing here. The interface is described at /docs and /openapi.json"

/** A known route whose parameter is no UTF-8 once its percent signs are decoded. */
const undecodable = (path: string) => ({
  code: path.startsWith("/v1/validate/") ? ("INVALID_VAT_ID" as const) : ("VALIDATION_ERROR" as const),
  message: "The path has a percent sign that does not stand for UTF-8"
})

const pathOf = ({ method, url }: HttpServerRequest.HttpServerRequest) => ({ method, path: url.split("?", 1)[0] ?? "/" })

/** The page of the docs carries all it needs. What its script would like to fetch from elsewhere (fonts, telemetry) stays unfetched. */
const pagePolicy =
  "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src 'self' data: blob:; font-src data:; " +
  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const isPage = (response: HttpServerResponse.HttpServerResponse) =>
  response.headers["content-type"]?.startsWith("text/html") === true

const withHeaders = Effect.fnUntraced(function* (
  response: HttpServerResponse.HttpServerResponse,
  { requestId, traceId }: ServedRequest,
  scope: CollectedHeaders
) {
  const usage = MutableRef.get(scope.usage)
  const window = MutableRef.get(scope.window)
  const headers: Record<string, string> = { "x-request-id": requestId, "x-content-type-options": "nosniff" }
  if (traceId !== null) headers["x-trace-id"] = traceId
  // An answer is true for its moment: nobody but us may keep it, unless its endpoint says otherwise.
  if (response.headers["cache-control"] === undefined) headers["cache-control"] = "no-store"
  if (isPage(response) && response.headers["content-security-policy"] === undefined) {
    headers["content-security-policy"] = pagePolicy
  }
  if (usage !== null) {
    headers["x-service-usage"] = `${usage.used}/${usage.limit}`
    if (nearLimit(usage)) headers["x-service-upgrade"] = yield* Errors.UpgradeUrl
  }
  if (window !== null) {
    // draft-ietf-httpapi-ratelimit-headers-10, read 2026-11.
    headers["ratelimit-policy"] = `"minute";q=${window.limit};w=60`
    headers["ratelimit"] = `"minute";r=${Math.max(0, window.remaining)};t=${window.resetSeconds}`
  }
  return HttpServerResponse.setHeaders(response, headers)
})
