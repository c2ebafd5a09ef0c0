import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "#http/Api.ts"
import { CurrentKey } from "#http/Authentication.ts"

export const layer = HttpApiBuilder.group(Api, "usage", (handlers) =>
  handlers.handle("usage", () =>
    Effect.map(CurrentKey, ({ period, plan, usage: { limit, used } }) => ({
      plan,
      period: { start: period.start, end: period.end },
      // A smaller plan may have less than what is used already.
      requests: { used, remaining: Math.max(0, limit - used), limit }
    }))
  )
)
