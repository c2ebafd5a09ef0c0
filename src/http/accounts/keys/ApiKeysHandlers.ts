import { Effect, Redacted } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ClaimApiKey } from "#domain/accounts/keys/ClaimApiKey.ts"
import { ApiKeyList, type ListedKey } from "#domain/accounts/keys/ApiKeyList.ts"
import { IssueApiKey } from "#domain/accounts/keys/IssueApiKey.ts"
import { RevokeApiKey } from "#domain/accounts/keys/RevokeApiKey.ts"
import { DecodedApi } from "#http/Api.ts"
import { CurrentAccount } from "#http/pipeline/Authentication.ts"
import * as FailureResponses from "#http/pipeline/FailureResponses.ts"

export const layer = HttpApiBuilder.group(
  DecodedApi,
  "apiKeys",
  Effect.fnUntraced(function* (handlers) {
    const { all } = yield* ApiKeyList
    const { issue } = yield* IssueApiKey
    const { claim } = yield* ClaimApiKey
    const { revoke } = yield* RevokeApiKey

    return handlers.handleAll({
      create: Effect.fnUntraced(function* ({ payload }) {
        const { accountId } = yield* CurrentAccount
        const issued = yield* issue(accountId, payload?.name ?? "")
        return { ...recordOf(issued), key: Redacted.value(issued.key) }
      }, FailureResponses.respond),
      list: Effect.fnUntraced(function* () {
        const { accountId } = yield* CurrentAccount
        const listed = yield* all(accountId)
        return { api_keys: listed.map((key) => ({ ...recordOf(key), revoked: key.revoked })) }
      }, FailureResponses.respond),
      claim: Effect.fnUntraced(function* ({ payload }) {
        const { accountId } = yield* CurrentAccount
        const key = yield* claim(accountId, Redacted.make(payload.api_key))
        return { ...recordOf(key), revoked: key.revoked }
      }, FailureResponses.respond),
      revoke: Effect.fnUntraced(function* ({ params }) {
        const { accountId } = yield* CurrentAccount
        yield* revoke(accountId, params.id, "owner")
        return { message: `The API key ${params.id} is now revoked` }
      }, FailureResponses.respond)
    })
  })
)

const recordOf = ({ issuedAt, label, prefix }: Pick<ListedKey, "issuedAt" | "label" | "prefix">) => ({
  id: prefix,
  prefix,
  name: label,
  created_at: issuedAt
})
