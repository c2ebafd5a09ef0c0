import { DateTime, Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { AnswerCache } from "#domain/AnswerCache.ts"
import { Sources, type SourceState, type SourceStatus } from "#domain/Sources.ts"
import { Api, interfaceVersion } from "#http/Api.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "system",
  Effect.fnUntraced(function* (handlers) {
    const sources = yield* Sources
    const cache = yield* AnswerCache

    return handlers.handleAll({
      health: Effect.fnUntraced(function* () {
        return { status: "ok" as const, timestamp: yield* DateTime.now, version: interfaceVersion }
      }),
      status: Effect.fnUntraced(function* () {
        const { active, bzst, failoverActive, vies } = yield* sources.status
        const cacheAnswers = yield* Effect.result(cache.ping)
        const cacheState: SourceState = cacheAnswers._tag === "Success" ? "operational" : "unavailable"
        const oneIsUp = vies.state !== "unavailable" || bzst.state !== "unavailable"
        return {
          status: oneIsUp ? ("operational" as const) : ("degraded" as const),
          timestamp: yield* DateTime.now,
          sources: { vies: reportOf(vies), bzst: reportOf(bzst), cache: { status: cacheState } },
          active_source: active,
          failover_active: failoverActive
        }
      })
    })
  })
)

const reportOf = ({ lastChecked, latencyMs, state }: SourceStatus) => ({
  status: state,
  latency_ms: latencyMs,
  last_checked: lastChecked
})
