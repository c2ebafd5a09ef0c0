/** Declares POST /v1/keys/rotate and DELETE /v1/keys/self: operations of a client on its own key, without a login. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { KeyRequired } from "#http/pipeline/Authentication.ts"
import { authenticationErrors, bodyRefusals, errorBody } from "#http/pipeline/Errors.ts"
import { DecodeErrors } from "#http/pipeline/DecodeErrors.ts"
import { Timestamp } from "#http/wire/Timestamp.ts"

/** The body of a rotation. Without a body the old key stays valid for 24 hours. */
const KeyRotation = [
  Schema.Struct({
    revoke_old: Schema.optionalKey(
      Schema.Boolean.annotate({
        description:
          "true: the old key ends at once, for example because it leaked. Default: the old key stays valid for 24 hours",
        examples: [false]
      })
    )
  }).annotate({ title: "KeyRotation" }),
  Schema.Null
] as const

const RotatedKey = Schema.Struct({
  id: Schema.String.annotate({ description: "The first 12 characters of the new key", examples: ["svc_live_HUX"] }),
  prefix: Schema.String.annotate({ description: "Equal to id", examples: ["svc_live_HUX"] }),
  key: Schema.String.annotate({
    description: "Shown only once: store it",
    examples: ["svc_live_HUXJ4gRVYKsVcUEZAGNctMef0n5cRtVF0Hv5ww"]
  }),
  old_key_valid_until: Schema.NullOr(Timestamp).annotate({ description: "Time at which the old key ends; null if it has ended" })
}).annotate({ identifier: "RotatedApiKey", description: "The new key" })

const RevokedKey = Schema.Struct({
  message: Schema.String.annotate({ examples: ["The API key is now revoked"] })
}).annotate({ identifier: "ApiKeySelfRevoked", description: "The key is revoked" })

export class KeysApi extends HttpApiGroup.make("keys")
  .add(
    HttpApiEndpoint.post("rotate", "/v1/keys/rotate", {
      payload: KeyRotation,
      success: RotatedKey.pipe(HttpApiSchema.status(201)),
      error: [
        ...bodyRefusals,
        errorBody("VALIDATION_ERROR"),
        errorBody("API_KEY_REPLACED"),
        errorBody("RATE_LIMIT_EXCEEDED"),
        ...authenticationErrors
      ]
    }).annotateMerge(
      OpenApi.annotations({
        identifier: "rotateApiKey",
        summary: "Replace the API key of this request",
        description:
          "Returns a new key with the usage and the receipts of the old one. A key that was replaced earlier ends at once, and cannot rotate or revoke before: 409 `API_KEY_REPLACED`. " +
          "A rotation counts as an issued key: at most 50 per calendar month."
      })
    )
  )
  .add(
    HttpApiEndpoint.delete("revokeSelf", "/v1/keys/self", {
      success: RevokedKey,
      error: [errorBody("API_KEY_REPLACED"), ...authenticationErrors]
    }).annotateMerge(
      OpenApi.annotations({
        identifier: "revokeOwnApiKey",
        summary: "Revoke the API key of this request",
        description: "The key, and the key that it replaced less than 24 hours ago, can never be used again."
      })
    )
  )
  .middleware(DecodeErrors)
  .middleware(KeyRequired)
  .annotateMerge(
    OpenApi.annotations({
      title: "Own key",
      description: "Replace or revoke the API key of the request, without a login."
    })
  ) {}
