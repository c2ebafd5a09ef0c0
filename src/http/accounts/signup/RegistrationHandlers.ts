import { Effect, Option, Redacted } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { RegisterAgent } from "#domain/accounts/signup/RegisterAgent.ts"
import { DecodedApi } from "#http/Api.ts"
import { idempotencyKeyLength, idempotencyKeyVariety } from "#http/accounts/signup/RegistrationApi.ts"
import { makeClientOf } from "#http/pipeline/Authentication.ts"
import * as DecodeErrors from "#http/pipeline/DecodeErrors.ts"
import * as FailureResponses from "#http/pipeline/FailureResponses.ts"
import * as IdempotencyKeyHeader from "#http/wire/IdempotencyKeyHeader.ts"

const isVaried = (key: string) => new Set(key).size >= idempotencyKeyVariety

export const layer = HttpApiBuilder.group(
  DecodedApi,
  "registration",
  Effect.fnUntraced(function* (handlers) {
    const clientOf = yield* makeClientOf
    const { register } = yield* RegisterAgent

    return handlers.handle(
      "register",
      Effect.fnUntraced(function* ({ headers, payload }) {
        const header = headers["idempotency-key"]
        const idempotencyKey =
          header === undefined
            ? null
            : Option.getOrNull(Option.filter(IdempotencyKeyHeader.parse(header, idempotencyKeyLength), isVaried))
        if (header !== undefined && idempotencyKey === null) {
          return yield* DecodeErrors.respond(
            IdempotencyKeyHeader.problem(idempotencyKeyLength, `, at least ${idempotencyKeyVariety} of them different`)
          )
        }
        const request = yield* HttpServerRequest.HttpServerRequest
        const { apiKey, isReplayed, plan, quota } = yield* register({
          client: clientOf(request),
          idempotencyKey,
          email: payload.email ?? null,
          agentId: payload.agent_id ?? null
        })
        const body = { api_key: Redacted.value(apiKey), tier: plan, quota }
        return HttpServerResponse.jsonUnsafe(body, { status: 201, headers: IdempotencyKeyHeader.replayed(isReplayed) })
      }, FailureResponses.respond)
    )
  })
)
