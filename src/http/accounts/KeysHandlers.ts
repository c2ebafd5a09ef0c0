import { Effect, Redacted } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { RevokeApiKey } from "#domain/accounts/RevokeApiKey.ts"
import { RotateApiKey } from "#domain/accounts/RotateApiKey.ts"
import { DecodedApi } from "#http/Api.ts"
import { CurrentKey } from "#http/pipeline/Authentication.ts"
import * as FailureResponses from "#http/pipeline/FailureResponses.ts"

export const layer = HttpApiBuilder.group(
  DecodedApi,
  "keys",
  Effect.fnUntraced(function* (handlers) {
    const { revoke } = yield* RevokeApiKey
    const { rotate } = yield* RotateApiKey

    return handlers.handleAll({
      rotate: Effect.fnUntraced(function* ({ payload }) {
        const { accountId, keyId } = yield* CurrentKey
        const { formerUntil, key, prefix } = yield* rotate(accountId, keyId, payload?.revoke_old !== true)
        return { id: prefix, prefix, key: Redacted.value(key), old_key_valid_until: formerUntil }
      }, FailureResponses.respond),
      revokeSelf: Effect.fnUntraced(function* () {
        const { accountId, keyId } = yield* CurrentKey
        yield* revoke(accountId, keyId, "key")
        return { message: "The API key is now revoked" }
      }, FailureResponses.respond)
    })
  })
)
