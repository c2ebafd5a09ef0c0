/** Serves GET /v1/usage by a plain route. */
import { DateTime, Effect } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { makeKeyCallerOf } from "#http/pipeline/Authentication.ts"
import * as FailureResponses from "#http/pipeline/FailureResponses.ts"
import type { KeyCaller } from "#domain/callers/Caller.ts"
import { type UsageReport, usagePath } from "#http/accounts/UsageApi.ts"

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
  // After a change to a smaller plan the usage may exceed the limit.
  requests: { used, remaining: Math.max(0, limit - used), limit }
})
