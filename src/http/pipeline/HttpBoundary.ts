/**
 * Wraps all routes. Adds to every response the request id and the caller's usage and window, and the error body where no endpoint
 * answers: unknown routes, wrong methods, other media types, bodies that are too large, defects (rules 5, 10, 41, 44).
 */
import { Cause, Context, Effect, MutableRef, Option, Redacted, Schema } from "effect"
import { HttpBody, HttpRouter, HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Identity } from "#domain/callers/Identity.ts"
import { EvidenceAltered } from "#domain/audit/Integrity.ts"
import type { Standing } from "#domain/callers/Standing.ts"
import * as Compression from "#http/pipeline/Compression.ts"
import * as Cors from "#http/pipeline/Cors.ts"
import * as EntityTags from "#http/pipeline/EntityTags.ts"
import * as Errors from "#http/pipeline/Errors.ts"
import * as RequestStart from "#http/pipeline/RequestStart.ts"
import * as ResponseHeaders from "#http/pipeline/ResponseHeaders.ts"
import { RouteTable } from "#http/pipeline/RouteTable.ts"

type App = Effect.Effect<HttpServerResponse.HttpServerResponse, unknown, HttpServerRequest.HttpServerRequest>

/**
 * Limit of requests in flight; more are rejected before they cost anything. A lookup may wait for 35 s: at three hundred per
 * second, this many are in flight while a source hangs.
 */
export const MaxInFlight = Context.Reference<number>("vatproof/http/pipeline/MaxInFlight", { defaultValue: () => 10_000 })

const make = Effect.gen(function* () {
  const maxInFlight = yield* MaxInFlight
  const start = yield* RequestStart.make
  const headersOf = yield* ResponseHeaders.make
  const standingOf = yield* makeStandingOf
  const compress = yield* Compression.make
  const tag = yield* EntityTags.make
  const cors = yield* Cors.make
  const problemFor = yield* makeProblemFor
  let inFlight = 0

  /** The response of the app, or of this module if the app has none. */
  const answer = (request: HttpServerRequest.HttpServerRequest, app: App) => {
    const preflight = request.method === "OPTIONS" ? cors.preflight(request) : null
    if (preflight !== null) return Effect.succeed(preflight)
    if (endsWithSlash(request.url)) return problemFor(404, request)
    return Effect.matchCauseEffect(app, {
      onSuccess: (response) => (isForeignError(response) ? problemFor(response.status, request) : Effect.succeed(response)),
      onFailure: (cause) =>
        isClientGone(cause)
          ? Effect.failCause(cause)
          : Effect.flatMap(responseOf(cause), (response) =>
              isForeignError(response) ? problemFor(response.status, request) : Effect.succeed(response)
            )
    })
  }

  return (app: App) =>
    Effect.withFiber<HttpServerResponse.HttpServerResponse, unknown, HttpServerRequest.HttpServerRequest>((fiber) => {
      const request = Context.getUnsafe(fiber.context, HttpServerRequest.HttpServerRequest)
      const started = start(request)
      inFlight += 1
      const isOverloaded = inFlight > maxInFlight
      const answered = isOverloaded ? Errors.toResponse(Errors.overloaded) : answer(request, app)
      const complete = (response: HttpServerResponse.HttpServerResponse) => {
        const tagged = tag(request, response)
        const completed = HttpServerResponse.setHeaders(fromOneCopy(tagged), headersOf(tagged, started))
        return compress(request, cors.shared(request, completed))
      }
      const completed = Effect.flatMap(RequestStart.within(started, answered), (response) => {
        const key = request.headers["x-api-key"]
        // Rule 41: every response to a valid key has its usage, including endpoints that need no key.
        return key === undefined || isOverloaded || MutableRef.get(started.scope.standing) !== null
          ? complete(response)
          : Effect.flatMap(standingOf(key), (standing) => {
              MutableRef.set(started.scope.standing, standing)
              return complete(response)
            })
      })
      return Effect.onExit(completed, (exit) => {
        inFlight -= 1
        const line = started.end(exit)
        return line === undefined ? Effect.void : RequestStart.within(started, line)
      })
    })
})

/** Timeout of reading the usage of a key for a response that does not need it. */
const standingTimeout = "250 millis"

/** Creates a function from a key to its standing; null if the key is invalid or the database does not answer in time. */
const makeStandingOf = Effect.map(
  Identity,
  (identity) => (key: string) =>
    identity.refresh(Redacted.make(key)).pipe(
      Effect.map(({ limit, used }): Standing => ({ usage: { used, limit }, window: null })),
      Effect.timeoutOption(standingTimeout),
      Effect.map(Option.getOrNull),
      // The response is complete: a failure or defect while reading one header must not replace it.
      Effect.catchCause(() => Effect.succeed(null))
    )
)

/** The middleware around all routes, known or not. */
export const layer = HttpRouter.middleware(make, { global: true })

/**
 * True for an error response that Errors.ts did not create: it has the library's body, or none. Pages are our own: the library
 * creates plain text.
 */
const isForeignError = (response: HttpServerResponse.HttpServerResponse) =>
  response.status >= 400 && response.headers["content-type"] !== "application/json" && !ResponseHeaders.isPage(response)

/**
 * Sends a long text as bytes, which are encoded once for documents that never change. As text it would be encoded again for each
 * client, and retained while a slow client reads it.
 */
const fromOneCopy = (response: HttpServerResponse.HttpServerResponse) => {
  const { body } = response
  if (body._tag !== "Uint8Array" || body.text === undefined || body.contentLength < longText) return response
  return HttpServerResponse.setBody(response, HttpBody.uint8Array(body.body, body.contentType))
}

/** In bytes. A short body is written together with its headers. */
const longText = 65_536

/** True if the client has disconnected. */
const isClientGone = (cause: Cause.Cause<unknown>) =>
  Cause.hasInterruptsOnly(cause) && cause.reasons.some(({ annotations }) => annotations.has(HttpServerError.ClientAbort.key))

const isEvidenceAltered = Schema.is(EvidenceAltered)

const responseOf = Effect.fnUntraced(function* (cause: Cause.Cause<unknown>) {
  // After its grace period, a stopping service interrupts the requests in flight.
  if (Cause.hasInterruptsOnly(cause)) return yield* Errors.toResponse(Errors.stopping)
  const [response] = yield* HttpServerError.causeResponse(cause)
  if (response.status < 500) return response
  yield* Effect.logError("A request failed by a defect", cause)
  if (cause.reasons.some((reason) => reason._tag === "Die" && isEvidenceAltered(reason.defect))) {
    return yield* Errors.toResponse(Errors.evidenceAltered)
  }
  return yield* Errors.toResponse({ code: "INTERNAL_ERROR", message: "Something went wrong on our side" })
})

const makeProblemFor = Effect.map(
  RouteTable,
  ({ allowedMethods }) =>
    (status: number, request: HttpServerRequest.HttpServerRequest) => {
      const { method, path } = pathOf(request)
      const allowed = allowedMethods(path)
      switch (status) {
        case 404:
          if (allowed.length === 0 || allowed.includes(method))
            return Errors.toResponse({ code: "NOT_FOUND", message: nothingHere })
          return Errors.methodNotAllowed(method, allowed)
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
)

const slash = "/".charCodeAt(0)

/** Only the path `/` ends with a slash. The router treats a final slash as an empty parameter, or ignores it. */
const endsWithSlash = (url: string) => {
  const queryAt = url.indexOf("?")
  const end = queryAt < 0 ? url.length : queryAt
  return end > 1 && url.charCodeAt(end - 1) === slash
}

const nothingHere = "There is nothing at this path. The interface is described at /docs and /openapi.json"

const pathOf = ({ method, url }: HttpServerRequest.HttpServerRequest) => ({ method, path: url.split("?", 1)[0] ?? "/" })
