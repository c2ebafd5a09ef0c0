/**
 * Serves GET /v1/usage. The route is added to the router directly, because the decoding by `HttpApiBuilder` costs too much CPU time.
 */
import { DateTime, Effect } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { makeKeyCallerOf } from "#http/pipeline/Authentication.ts"
import * as FailureResponses from "#http/pipeline/FailureResponses.ts"
import type { KeyCaller } from "#domain/callers/Caller.ts"
import { type UsageReport, usagePath } from "#http/callers/UsageApi.ts"

export const layer = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const keyCallerOf = yield* makeKeyCallerOf
    yield* router.add("GET", usagePath, (request) =>
      FailureResponses.respond(Effect.map(keyCallerOf(request), (caller) => HttpServerResponse.jsonUnsafe(reportOf(caller))))
    )
  })
)

const reportOf = ({ limit, period, plan, used }: KeyCaller): typeof UsageReport.Encoded => ({
  plan,
  period: { start: DateTime.formatIso(period.start), end: DateTime.formatIso(period.end) },
  // The usage can exceed the limit after a change to a smaller plan. The remaining number is then 0 instead of negative.
  requests: { used, remaining: Math.max(0, limit - used), limit }
})
