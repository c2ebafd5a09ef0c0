import { DateTime, Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { memberStates } from "#domain/vat/MemberStates.ts"
import { type CallCounts, SourceHistory } from "#domain/vat/SourceHistory.ts"
import { DecodedApi } from "#http/Api.ts"
import * as FailureResponses from "#http/pipeline/FailureResponses.ts"
import { defaultDays, type SourceHistoryReport } from "#http/system/SourceHistoryApi.ts"

export const layer = HttpApiBuilder.group(
  DecodedApi,
  "sourceHistory",
  Effect.fnUntraced(function* (handlers) {
    const { read } = yield* SourceHistory

    return handlers.handleAll({
      history: Effect.fnUntraced(function* ({ query: { days = defaultDays, member_state } }) {
        const { counts, readAtMs, resolution } = yield* read(days)
        const byState = Map.groupBy(counts, ({ memberState }) => memberState)
        const prefixes = member_state === undefined ? [...memberStates.keys()] : [member_state]
        const body: typeof SourceHistoryReport.Encoded = {
          timestamp: isoOf(readAtMs),
          resolution,
          member_states: Object.fromEntries(prefixes.map((prefix) => [prefix, (byState.get(prefix) ?? []).map(shown)]))
        }
        // Thousands of counts would take the schema's encoder many milliseconds.
        return HttpServerResponse.jsonUnsafe(body)
      }, FailureResponses.respond)
    })
  })
)

const isoOf = (ms: number) => DateTime.formatIso(DateTime.makeUnsafe(ms))

const shown = ({ answered, calls, failed, fromMs, maxMs, meanMs, source }: CallCounts) => ({
  from: isoOf(fromMs),
  source,
  calls,
  answered,
  failed,
  mean_ms: meanMs,
  max_ms: maxMs
})
