/**
 * Serves GET /health and GET /v1/status. Both routes are added to the router directly, because the decoding by `HttpApiBuilder` costs
 * too much CPU time.
 */
import { Clock, DateTime, Effect } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { AnswerCache } from "#domain/vat/AnswerCache.ts"
import { Sources, type SourceState, type SourceStatus } from "#domain/vat/Sources.ts"
import { version } from "#domain/kernel/Version.ts"
import { type Health, healthPath, type SourceStatusReport, statusPath } from "#http/system/SystemApi.ts"

/** Creates an effect that returns the status of sources and cache, for GET /v1/status and the page `/status`. */
export const makeSourceStatus = Effect.gen(function* () {
  const sources = yield* Sources
  const cache = yield* AnswerCache
  const clock = yield* Clock.Clock

  return Effect.gen(function* () {
    const { active, bzst, failoverActive, memberStates, vies } = yield* sources.status
    const cacheAnswers = yield* Effect.result(cache.ping)
    const cacheState: SourceState = cacheAnswers._tag === "Success" ? "operational" : "unavailable"
    const body: typeof SourceStatusReport.Encoded = {
      status: vies.answers || bzst.answers ? "operational" : "degraded",
      timestamp: isoOf(clock.currentTimeMillisUnsafe()),
      sources: { vies: reportOf(vies), bzst: reportOf(bzst), cache: { status: cacheState } },
      active_source: active,
      failover_active: failoverActive,
      member_states: Object.fromEntries(
        memberStates.map(({ prefix, sinceMs, state }) => [prefix, { status: state, since: isoOf(sinceMs) }])
      )
    }
    return body
  })
})

export const layer = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const sourceStatus = yield* makeSourceStatus
    const clock = yield* Clock.Clock

    const health = Effect.sync(() => {
      const timestamp = isoOf(clock.currentTimeMillisUnsafe())
      const body: typeof Health.Encoded = { status: "ok", timestamp, version }
      return HttpServerResponse.jsonUnsafe(body)
    })

    yield* router.add("GET", healthPath, health)
    yield* router.add(
      "GET",
      statusPath,
      Effect.map(sourceStatus, (body) => HttpServerResponse.jsonUnsafe(body))
    )
  })
)

const isoOf = (ms: number) => DateTime.formatIso(DateTime.makeUnsafe(ms))

const reportOf = ({ lastChecked, latencyMs, state }: SourceStatus) => ({
  status: state,
  latency_ms: latencyMs,
  last_checked: DateTime.formatIso(lastChecked)
})
