/**
 * Answers the plainest and commonest request, a keyed validation without parameters of what this process remembers, before the router
 * and the schemas are asked: they cost more than the database. Whatever is not that plain, or not remembered, goes on to them.
 */
import { DateTime, Effect, MutableRef, Option } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { RepeatAnswer, type Repetition } from "#domain/RepeatAnswer.ts"
import { RequestContext } from "#domain/RequestContext.ts"
import type { Validation } from "#domain/ValidateVatId.ts"
import * as Errors from "#http/Errors.ts"
import { RequestScope } from "#http/RequestScope.ts"

/** A path that means itself: no query, nothing percent-encoded. */
const plainPath = /^\/v1\/validate\/([A-Za-z0-9.+*-]{1,32})$/u

type App<E, R> = Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>

export const make = Effect.map(
  RepeatAnswer,
  ({ repeat }) =>
    <E, R>(request: HttpServerRequest.HttpServerRequest, app: App<E, R>): App<E, R> => {
      const key = request.headers["x-api-key"]
      const input = request.method === "GET" && key !== undefined ? plainPath.exec(request.url)?.[1] : undefined
      if (key === undefined || input === undefined) return app
      return Effect.flatMap(repeat(key, input), (repetition) =>
        Option.isNone(repetition) ? app : Errors.respond(respondWith(repetition.value))
      )
    }
)

const respondWith = Effect.fnUntraced(function* ({ outcome, usage, window }: Repetition) {
  const scope = yield* RequestScope
  MutableRef.set(scope.usage, usage)
  MutableRef.set(scope.window, window)
  const validation = yield* Effect.fromResult(outcome)
  const { requestId } = yield* RequestContext
  return HttpServerResponse.text(bodyOf(validation, requestId, DateTime.formatIso(yield* DateTime.now)), jsonResponse)
})

const jsonResponse = { contentType: "application/json" }

/** The same bytes as ValidationResult's encoder makes; a test compares them. */
const bodyOf = ({ answer, vatId }: Validation, requestId: string, requestedAt: string) =>
  `{"valid":${answer.valid},"vat_id":"${vatId.value}","country_code":"${vatId.memberState.alpha2}","vat_number":"${vatId.number}",` +
  `"company_name":${JSON.stringify(answer.company_name)},"company_address":${JSON.stringify(answer.company_address)},"source":"cache",` +
  `"source_timestamp":"${DateTime.formatIso(answer.answered_at)}","cache":true,"qualified_confirmation":null,"consultation_number":null,` +
  `"request_id":"${requestId}","requested_at":"${requestedAt}"}`
