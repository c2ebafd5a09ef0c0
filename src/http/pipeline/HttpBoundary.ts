/**
 * Wraps all routes. Adds the request id, the caller's usage and the rate limit to every response (rules 5, 41). Creates the error
 * responses that no endpoint creates: for unknown paths, unsupported methods and media types, bodies that are too large, and defects
 * (rules 10, 44).
 */
import { Cause, Context, Effect, MutableRef, Option, Redacted, Schema } from "effect"
import { HttpBody, HttpRouter, HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Identity } from "#domain/callers/Identity.ts"
import { EvidenceAltered } from "#domain/log/Integrity.ts"
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
 * Maximum number of requests in flight; further requests are rejected at once. While a source hangs, each lookup takes up to 35 s, so about
 * 300 requests per second reach this limit.
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

  /** Returns the response of the routes (`app`). Replaces failures and the library's own error responses by JSON errors. */
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
        // Rule 41: every response to a request with a valid key has the key's usage, also if the endpoint needs no key.
        return key === undefined || isOverloaded || MutableRef.get(started.hints.standing) !== null
          ? complete(response)
          : Effect.flatMap(standingOf(key), (standing) => {
              MutableRef.set(started.hints.standing, standing)
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

/** Timeout of reading a key's usage for an endpoint that needs no key. After the timeout the response is sent without the usage. */
const standingTimeout = "250 millis"

/** Creates a function that returns the usage of a key; null if the key is invalid or the database does not answer in time. */
const makeStandingOf = Effect.map(
  Identity,
  (identity) => (key: string) =>
    identity.refresh(Redacted.make(key)).pipe(
      Effect.map(({ limit, used }): Standing => ({ usage: { used, limit }, window: null })),
      Effect.timeoutOption(standingTimeout),
      Effect.map(Option.getOrNull),
      // A failure or defect while reading the usage must not turn the finished response into an error.
      Effect.catchCause(() => Effect.succeed(null))
    )
)

/** Installs the middleware around all requests, also those to unknown paths. */
export const layer = HttpRouter.middleware(make, { global: true })

/**
 * Returns true for an error response that the library created, which has plain text or no body. The service itself creates errors as JSON
 * or as HTML pages.
 */
const isForeignError = (response: HttpServerResponse.HttpServerResponse) =>
  response.status >= 400 && response.headers["content-type"] !== "application/json" && !ResponseHeaders.isPage(response)

/**
 * Replaces a long text body by its bytes, so that all responses with the same static document share one copy. Node would encode a text for
 * each client, and retain each copy while a slow client reads it.
 */
const fromOneCopy = (response: HttpServerResponse.HttpServerResponse) => {
  const { body } = response
  if (body._tag !== "Uint8Array" || body.text === undefined || body.contentLength < longText) return response
  return HttpServerResponse.setBody(response, HttpBody.uint8Array(body.body, body.contentType))
}

/** Minimum length of a long text, in bytes. A shorter body stays text, because Node writes a text together with the headers. */
const longText = 65_536

/** Returns true if the client has disconnected. */
const isClientGone = (cause: Cause.Cause<unknown>) =>
  Cause.hasInterruptsOnly(cause) && cause.reasons.some(({ annotations }) => annotations.has(HttpServerError.ClientAbort.key))

/** The error for a defect. Its cause is logged and not sent. */
const defect: Errors.Problem = {
  code: "INTERNAL_ERROR",
  message: "The service failed; report the request_id to the operator"
}

const isEvidenceAltered = Schema.is(EvidenceAltered)

const responseOf = Effect.fnUntraced(function* (cause: Cause.Cause<unknown>) {
  // After its grace period, a stopping service interrupts the requests in flight.
  if (Cause.hasInterruptsOnly(cause)) return yield* Errors.toResponse(Errors.stopping)
  const [response] = yield* HttpServerError.causeResponse(cause)
  if (response.status < 500) return response
  yield* Effect.logError("A request failed unexpectedly; the response has status 500", cause)
  if (cause.reasons.some((reason) => reason._tag === "Die" && isEvidenceAltered(reason.defect))) {
    return yield* Errors.toResponse(Errors.evidenceAltered)
  }
  return yield* Errors.toResponse(defect)
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
          return Errors.toResponse({ code: "PAYLOAD_TOO_LARGE", message: "The request body exceeds 16 KiB" })
        case 415:
          return Errors.toResponse({ code: "UNSUPPORTED_MEDIA_TYPE", message: "Send the body as application/json" })
        case 400:
          return Errors.toResponse({
            code: "VALIDATION_ERROR",
            message: "The request cannot be parsed; check the syntax of its body"
          })
        default:
          return Errors.toResponse(defect)
      }
    }
)

const slash = "/".charCodeAt(0)

/** Returns true for a path that ends with a slash, except `/` itself. The response is 404, although the router would accept some of these paths. */
const endsWithSlash = (url: string) => {
  const queryAt = url.indexOf("?")
  const end = queryAt < 0 ? url.length : queryAt
  return end > 1 && url.charCodeAt(end - 1) === slash
}

const nothingHere = "No endpoint has this path; /docs and /openapi.json describe all endpoints"

const pathOf = ({ method, url }: HttpServerRequest.HttpServerRequest) => ({ method, path: url.split("?", 1)[0] ?? "/" })
