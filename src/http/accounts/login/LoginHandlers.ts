import { Duration, Effect, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { accessTokenLifetime } from "#domain/accounts/AccessTokens.ts"
import { LogIn } from "#domain/accounts/login/LogIn.ts"
import { DecodedApi } from "#http/Api.ts"
import { makeClientOf } from "#http/pipeline/Authentication.ts"
import * as FailureResponses from "#http/pipeline/FailureResponses.ts"

export const layer = HttpApiBuilder.group(
  DecodedApi,
  "login",
  Effect.fnUntraced(function* (handlers) {
    const clientOf = yield* makeClientOf
    const { logIn } = yield* LogIn

    return handlers.handle(
      "login",
      Effect.fnUntraced(function* ({ payload }) {
        const request = yield* HttpServerRequest.HttpServerRequest
        const token = yield* logIn({
          client: clientOf(request),
          email: payload.email,
          password: Redacted.make(payload.password)
        })
        return { token: Redacted.value(token), expires_in: Duration.toSeconds(accessTokenLifetime) }
      }, FailureResponses.respond)
    )
  })
)
