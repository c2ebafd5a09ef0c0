import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { SourceHistory } from "#domain/vat/SourceHistory.ts"
import { DecodedApi } from "#http/Api.ts"
import * as FailureResponses from "#http/pipeline/FailureResponses.ts"
import { defaultDays } from "#http/system/SourceHistoryApi.ts"

export const layer = HttpApiBuilder.group(
  DecodedApi,
  "sourceHistory",
  Effect.fnUntraced(function* (handlers) {
    const { read } = yield* SourceHistory

    return handlers.handleAll({
      history: Effect.fnUntraced(function* ({ query: { days = defaultDays, member_state: only } }) {
        const history = yield* read(days)
        const all = history.member_states
        // Thousands of counts would take the schema's encoder many milliseconds.
        return HttpServerResponse.jsonUnsafe({ ...history, member_states: only === undefined ? all : { [only]: all[only] } })
      }, FailureResponses.respond)
    })
  })
)
