/**
 * What every response has, whoever made it: the request's id, the caller's usage and window, and the one error body also for what no
 * endpoint answers: unknown routes, wrong methods, other media types, bodies that are too large, defects (DECISIONS 7, 11, 14).
 */
import { Cause, Context, Effect, Option, Semaphore } from "effect"
import { HttpBody, HttpRouter, HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import * as Errors from "#http/Errors.ts"
import { FrontDoor, type PassedRequest } from "#http/FrontDoor.ts"
import * as RequestStart from "#http/RequestStart.ts"
import * as ResponseHeaders from "#http/ResponseHeaders.ts"
import { allowedMethods } from "#http/Routes.ts"

type App = Effect.Effect<HttpServerResponse.HttpServerResponse, unknown, HttpServerRequest.HttpServerRequest>

/**
 * Requests that may be under way; what is more is refused before it costs anything. A look-up may wait for 35 s: at three hundred of them a
 * second, so many are under way while a source hangs.
 */
export const MostUnderWay = Context.Reference<number>("vatproof/http/MostUnderWay", { defaultValue: () => 10_000 })

const make = Effect.gen(function* () {
  const frontDoor = yield* FrontDoor
  const places = yield* Semaphore.make(yield* MostUnderWay)
  const start = yield* RequestStart.make
  const headersOf = yield* ResponseHeaders.make

  return (app: App) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
      const passed = frontDoor.passed(request.source)
      const started = passed?.started ?? start(request)
      const complete = (response: HttpServerResponse.HttpServerResponse) =>
        HttpServerResponse.setHeaders(fromOneCopy(response), headersOf(response, started))

      const served = places.withPermitsIfAvailable(1)(passed === undefined ? app : answerPassed(passed, app))
      const answered = Effect.flatMap(served, (answer) =>
        Option.isSome(answer) ? Effect.succeed(answer.value) : Errors.toResponse(Errors.tooMuchToDo)
      )
      return RequestStart.within(started, answered).pipe(
        Effect.catchCause((cause) =>
          isClientGone(cause) ? Effect.failCause(cause) : RequestStart.within(started, responseOf(cause))
        ),
        Effect.flatMap((response) =>
          isForeignError(response)
            ? Effect.map(RequestStart.within(started, problemFor(response.status, request)), complete)
            : Effect.succeed(complete(response))
        ),
        Effect.onExit((exit) => {
          const line = started.end(exit)
          return line === undefined ? Effect.void : RequestStart.within(started, line)
        })
      )
    })
})

/** A request that the front door had begun, and could not end. */
const answerPassed = ({ repetition }: PassedRequest, app: App): App => {
  switch (repetition._tag) {
    case "Outdated":
      return app
    case "Refused":
      return Errors.respond(Effect.fail(repetition.refusal))
    case "Broken":
      return Effect.failCause(repetition.cause)
  }
}

/** The middleware around all routes, known or not. */
export const layer = HttpRouter.middleware(make, { global: true })

/** An error that did not come from Errors.ts has a body of the library's making, or none. Pages are our own: the library makes plain text. */
const isForeignError = (response: HttpServerResponse.HttpServerResponse) =>
  response.status >= 400 && response.headers["content-type"] !== "application/json" && !ResponseHeaders.isPage(response)

/**
 * A long text is sent as bytes, which are made once for the documents that never change: as text it would be encoded for each client
 * anew, and kept for as long as the client takes to read it.
 */
const fromOneCopy = (response: HttpServerResponse.HttpServerResponse) => {
  const { body } = response
  if (body._tag !== "Uint8Array" || body.text === undefined || body.contentLength < longText) return response
  return HttpServerResponse.setBody(response, HttpBody.uint8Array(body.body, body.contentType))
}

/** In bytes. A short one is written together with its headers. */
const longText = 65_536

/** Nobody is there to be answered. */
const isClientGone = (cause: Cause.Cause<unknown>) =>
  Cause.hasInterruptsOnly(cause) && cause.reasons.some(({ annotations }) => annotations.has(HttpServerError.ClientAbort.key))

const responseOf = Effect.fnUntraced(function* (cause: Cause.Cause<unknown>) {
  // After its grace a service that stops interrupts what is under way.
  if (Cause.hasInterruptsOnly(cause)) return yield* Errors.toResponse(Errors.stopping)
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
      if (allowed.length === 0 || allowed.includes(method)) return Errors.toResponse({ code: "NOT_FOUND", message: nothingHere })
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

const pathOf = ({ method, url }: HttpServerRequest.HttpServerRequest) => ({ method, path: url.split("?", 1)[0] ?? "/" })
