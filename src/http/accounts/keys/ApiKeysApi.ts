/** Declares POST and GET /v1/auth/api-keys, POST /v1/auth/api-keys/claim, DELETE /v1/auth/api-keys/{id} (rules 3, 42). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { KeyLabel } from "#domain/accounts/keys/ApiKeyList.ts"
import { LoginRequired } from "#http/pipeline/Authentication.ts"
import { authenticationErrors, bodyRefusals, errorBody } from "#http/pipeline/Errors.ts"
import { DecodeErrors } from "#http/pipeline/DecodeErrors.ts"
import { Timestamp } from "#http/wire/Timestamp.ts"

/** The body of a request for a key. Without a body the key has no name. */
const NewApiKey = [
  Schema.Struct({
    name: Schema.optionalKey(KeyLabel.annotate({ description: "Your name for the key", examples: ["Shop, production"] }))
  }).annotate({ title: "NewApiKey" }),
  Schema.Null
] as const

const fields = {
  id: Schema.String.annotate({ description: "The first 12 characters of the key", examples: ["svc_live_HUX"] }),
  prefix: Schema.String.annotate({ description: "Equal to id" }),
  name: Schema.String.annotate({ description: 'Your name for the key; "" if none' }),
  created_at: Timestamp
}

const CreatedKey = Schema.Struct({
  ...fields,
  key: Schema.String.annotate({ description: "Shown only once: store it" })
}).annotate({ identifier: "CreatedApiKey", description: "The new key" })

const ClaimedKey = Schema.Struct({
  api_key: Schema.String.annotate({
    description: "The whole key, as POST /v1/register or POST /v1/keys/rotate returned it",
    examples: ["svc_live_HUXJ4gRVYKsVcUEZAGNctMef0n5cRtVF0Hv5ww"]
  })
}).annotate({ title: "ApiKeyClaim" })

const ListedKey = Schema.Struct({
  ...fields,
  revoked: Schema.Boolean.annotate({ description: "The key can no longer authenticate" })
}).annotate({ identifier: "ApiKey", description: "A key of the account" })

const ListedKeys = Schema.Struct({
  api_keys: Schema.Array(ListedKey)
}).annotate({ identifier: "ApiKeys", description: "All keys of the account" })

const RevokedKey = Schema.Struct({ message: Schema.String }).annotate({
  identifier: "ApiKeyRevoked",
  description: "The key is revoked"
})

/** The endpoints of API keys. The last added middleware runs first, so a request is authenticated before it is decoded. */
export class ApiKeysApi extends HttpApiGroup.make("apiKeys")
  .add(
    HttpApiEndpoint.post("create", "/v1/auth/api-keys", {
      payload: NewApiKey,
      success: CreatedKey.pipe(HttpApiSchema.status(201)),
      error: [...bodyRefusals, errorBody("VALIDATION_ERROR"), errorBody("RATE_LIMIT_EXCEEDED"), ...authenticationErrors]
    }).annotateMerge(
      OpenApi.annotations({
        identifier: "createApiKey",
        summary: "Issue an API key",
        description:
          "Issues a new key to the account. An account has at most 25 active keys and receives at most 50 per calendar month."
      })
    )
  )
  .add(
    HttpApiEndpoint.get("list", "/v1/auth/api-keys", { success: ListedKeys, error: authenticationErrors }).annotateMerge(
      OpenApi.annotations({
        identifier: "listApiKeys",
        summary: "List your API keys",
        description: "Returns all keys of the account, newest first, including revoked ones."
      })
    )
  )
  .add(
    HttpApiEndpoint.post("claim", "/v1/auth/api-keys/claim", {
      payload: ClaimedKey,
      success: ListedKey,
      error: [
        ...bodyRefusals,
        errorBody("VALIDATION_ERROR"),
        errorBody("NOT_FOUND"),
        errorBody("API_KEY_NOT_CLAIMABLE"),
        errorBody("RATE_LIMIT_EXCEEDED"),
        ...authenticationErrors
      ]
    }).annotateMerge(
      OpenApi.annotations({
        identifier: "claimApiKey",
        summary: "Claim the API key of an agent",
        description:
          "Moves a key from POST /v1/register into your account. The key itself proves that it is yours. From then on your account's plan applies to the key, your account lists and " +
          "can revoke it, and its receipts, earlier ones included, are readable with your login. The key stays valid and its usage of the month continues. " +
          "If it replaced another key less than 24 hours ago, the replaced key ends. Claiming a key again changes nothing. A key of an account with a login cannot be claimed. " +
          "A claimed key counts as an issued key of your account."
      })
    )
  )
  .add(
    HttpApiEndpoint.delete("revoke", "/v1/auth/api-keys/:id", {
      params: { id: Schema.String.annotate({ description: "The first 12 characters of the key", examples: ["svc_live_HUX"] }) },
      success: RevokedKey,
      error: [errorBody("NOT_FOUND"), ...authenticationErrors]
    }).annotateMerge(
      OpenApi.annotations({
        identifier: "revokeApiKey",
        summary: "Revoke an API key",
        description: "The key can never be used again. Revoking a revoked key changes nothing."
      })
    )
  )
  .middleware(DecodeErrors)
  .middleware(LoginRequired)
  .annotateMerge(
    OpenApi.annotations({
      title: "API keys",
      description: "Issue, list, claim and revoke the API keys of your account, after a login."
    })
  ) {}
