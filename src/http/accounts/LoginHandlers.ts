import { Duration, Effect, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { accessTokenLifetime } from "#domain/accounts/AccessTokens.ts"
import { Identity } from "#domain/callers/Identity.ts"
import { LogIn } from "#domain/login/LogIn.ts"
import { DecodedApi } from "#http/Api.ts"
import { clientNetwork, TrustedProxies } from "#http/pipeline/ClientAddress.ts"
import * as FailureResponses from "#http/pipeline/FailureResponses.ts"

export const layer = HttpApiBuilder.group(
  DecodedApi,
  "login",
  Effect.fnUntraced(function* (handlers) {
    const identity = yield* Identity
    const proxies = yield* TrustedProxies
    const { logIn } = yield* LogIn

    return handlers.handle(
      "login",
      Effect.fnUntraced(function* ({ payload }) {
        const request = yield* HttpServerRequest.HttpServerRequest
        const client = identity.byAddress(clientNetwork(request, proxies.count)).stream
        const token = yield* logIn({
          client,
          email: payload.email,
          password: Redacted.make(payload.password)
        })
        return { token: Redacted.value(token), expires_in: Duration.toSeconds(accessTokenLifetime) }
      }, FailureResponses.respond)
    )
  })
)
