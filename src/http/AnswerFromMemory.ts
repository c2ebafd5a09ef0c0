/**
 * Answers the plainest and commonest request, a keyed validation without parameters of what this process remembers, before the router
 * and the schemas are asked: they cost more than the database. Whatever is not that plain, or not remembered, goes on to them.
 */
import { Clock, DateTime, Effect, MutableRef, Result, Tracer } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import type { StoredAnswer } from "#domain/AnswerCache.ts"
import { RepeatAnswer } from "#domain/RepeatAnswer.ts"
import { RequestContext } from "#domain/RequestContext.ts"
import type { VatId } from "#domain/VatId.ts"
import * as Errors from "#http/Errors.ts"
import { type CollectedHeaders, RequestScope } from "#http/RequestScope.ts"
import type { WatchedRequest } from "#http/RequestTelemetry.ts"

/** A path that means itself: no query, nothing percent-encoded. */
const plainPath = /^\/v1\/validate\/([A-Za-z0-9.+*-]{1,32})$/u

interface StoredAnswerAbout {
  readonly vatId: VatId
  readonly stored: StoredAnswer
}

type App<E, R> = Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>

/** Gives a function that answers a request from memory, or by what `app` gives. */
export const make = Effect.gen(function* () {
  const repetitions = yield* RepeatAnswer
  const clock = yield* Clock.Clock

  /** What the response is made of, kept for as long as the answer is remembered. */
  const beginnings = new WeakMap<StoredAnswer, string>()
  const beginningOf = (about: StoredAnswerAbout) => {
    const text = beginnings.get(about.stored) ?? beginningOfBody(about)
    beginnings.set(about.stored, text)
    return text
  }

  const responseOf = (about: StoredAnswerAbout, requestId: string) => {
    const requestedAt = DateTime.formatIso(DateTime.makeUnsafe(clock.currentTimeMillisUnsafe()))
    const body = `${beginningOf(about)}"request_id":"${requestId}","requested_at":"${requestedAt}"}`
    return HttpServerResponse.text(body, jsonResponse)
  }

  return <E, R>(
    request: HttpServerRequest.HttpServerRequest,
    { served, span }: WatchedRequest,
    scope: CollectedHeaders,
    app: () => App<E, R>
  ): App<E, R> => {
    const key = request.headers["x-api-key"]
    const input = request.method === "GET" && key !== undefined ? plainPath.exec(request.url)?.[1] : undefined
    const remembered = key === undefined || input === undefined ? undefined : repetitions.recall(key, input)
    if (remembered === undefined) return app()
    const repeated = repetitions.record(remembered, served)
    // Spans within the request cost more than they tell, where nobody will see them.
    const traced = span.sampled
      ? Effect.provideService(
          Effect.withSpan(repeated, "RepeatAnswer.record", { captureStackTrace: false }),
          Tracer.ParentSpan,
          span
        )
      : repeated
    return Effect.flatMap(traced, (repetition) => {
      if (repetition === undefined) return app()
      MutableRef.set(scope.usage, repetition.usage)
      MutableRef.set(scope.window, repetition.window)
      return Result.match(repetition.outcome, {
        onSuccess: (answer) => Effect.succeed(responseOf(answer, served.requestId)),
        onFailure: (refusal) =>
          Errors.respond(Effect.fail(refusal)).pipe(
            Effect.provideService(RequestContext, served),
            Effect.provideService(RequestScope, scope)
          )
      })
    })
  }
})

const jsonResponse = { contentType: "application/json" }

/** The same bytes as ValidationResult's encoder makes, up to what differs from request to request; a test compares them. */
const beginningOfBody = ({ stored: { answer }, vatId: { memberState, number, value } }: StoredAnswerAbout) =>
  `{"valid":${answer.valid},"vat_id":"${value}","country_code":"${memberState.alpha2}","vat_number":"${number}",` +
  `"company_name":${JSON.stringify(answer.company_name)},"company_address":${JSON.stringify(answer.company_address)},"source":"cache",` +
  `"source_timestamp":"${DateTime.formatIso(answer.answered_at)}","cache":true,"qualified_confirmation":null,"consultation_number":null,`
