import { Effect, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Identity } from "#domain/callers/Identity.ts"
import { RegisterAgent } from "#domain/signup/RegisterAgent.ts"
import { DecodedApi } from "#http/Api.ts"
import { clientNetwork, TrustedProxies } from "#http/pipeline/ClientAddress.ts"
import * as Errors from "#http/pipeline/Errors.ts"

export const layer = HttpApiBuilder.group(
  DecodedApi,
  "registration",
  Effect.fnUntraced(function* (handlers) {
    const identity = yield* Identity
    const proxies = yield* TrustedProxies
    const { register } = yield* RegisterAgent

    return handlers.handle(
      "register",
      Effect.fnUntraced(function* ({ payload }) {
        const request = yield* HttpServerRequest.HttpServerRequest
        const client = identity.byAddress(clientNetwork(request, proxies.count)).stream
        const { apiKey, plan, quota } = yield* register({
          client,
          email: payload.email ?? null,
          agentId: payload.agent_id ?? null
        })
        return { api_key: Redacted.value(apiKey), tier: plan, quota }
      }, Errors.respond)
    )
  })
)
