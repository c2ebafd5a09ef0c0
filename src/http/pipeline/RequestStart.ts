/** Starts every request: assigns its ids and begins its telemetry. */
import { Context, Effect, Tracer } from "effect"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { RequestContext } from "#domain/kernel/RequestContext.ts"
import * as RequestTelemetry from "#http/pipeline/RequestTelemetry.ts"
import { makeResponseHints, ResponseHints } from "#http/pipeline/ResponseHints.ts"

/**
 * Matches an X-Request-Id of the client that the service keeps and logs. An id with an API key or an access token does not match, so that a
 * secret in the wrong header is not logged.
 */
const usableRequestId = /^(?!.*svc_(?:live|audit)_|eyJ[\w-]+\.)[\w.-]{1,128}$/u

export interface StartedRequest extends RequestTelemetry.WatchedRequest {
  readonly hints: ResponseHints
}

export const make = Effect.gen(function* () {
  const { uuidV7 } = yield* Crypto
  const watch = yield* RequestTelemetry.make

  return (request: RequestTelemetry.InboundRequest): StartedRequest => {
    const correlationId = uuidV7()
    const inboundId = request.headers["x-request-id"]
    const requestId = typeof inboundId === "string" && usableRequestId.test(inboundId) ? inboundId : correlationId
    const hints = makeResponseHints()
    const { end, served, span } = watch(request, { requestId, correlationId }, hints)
    return { end, hints, served, span }
  }
})

/** Runs an effect as a part of the request: its events, logs and spans get the request's ids. */
export const within = <A, E, R>({ hints, served, span }: StartedRequest, effect: Effect.Effect<A, E, R>) =>
  Effect.updateContext(effect, (context: Context.Context<R>) =>
    context.pipe(Context.add(ResponseHints, hints), Context.add(RequestContext, served), Context.add(Tracer.ParentSpan, span))
  )
