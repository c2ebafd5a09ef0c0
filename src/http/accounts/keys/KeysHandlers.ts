import { Effect, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { prefixOf } from "#domain/accounts/ApiKey.ts"
import { RevokeApiKey } from "#domain/accounts/keys/RevokeApiKey.ts"
import { RotateApiKey } from "#domain/accounts/keys/RotateApiKey.ts"
import { DecodedApi } from "#http/Api.ts"
import { CurrentKey } from "#http/pipeline/Authentication.ts"
import * as FailureResponses from "#http/pipeline/FailureResponses.ts"

/** The account of the API key of the current request, and the prefix of its secret, which may be a former one. */
const ownSecret = Effect.zipWith(CurrentKey, HttpServerRequest.HttpServerRequest, ({ accountId }, { headers }) => ({
  accountId,
  prefix: prefixOf(headers["x-api-key"] ?? "")
}))

export const layer = HttpApiBuilder.group(
  DecodedApi,
  "keys",
  Effect.fnUntraced(function* (handlers) {
    const { revoke } = yield* RevokeApiKey
    const { rotate } = yield* RotateApiKey

    return handlers.handleAll({
      rotate: Effect.fnUntraced(function* ({ payload }) {
        const own = yield* ownSecret
        const { formerUntil, key, prefix } = yield* rotate(own.accountId, own.prefix, payload?.revoke_old !== true)
        return { id: prefix, prefix, key: Redacted.value(key), old_key_valid_until: formerUntil }
      }, FailureResponses.respond),
      revokeSelf: Effect.fnUntraced(function* () {
        const { accountId, prefix } = yield* ownSecret
        yield* revoke(accountId, prefix, "key")
        return { message: "The API key is now revoked" }
      }, FailureResponses.respond)
    })
  })
)
