/** Who is calling: an API key, or, where that is allowed, nobody in particular (INTERFACE 5, DECISIONS 9). */
import { Context, Effect, Layer, MutableRef } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiMiddleware, HttpApiSecurity } from "effect/http-api"
import type { Caller, KeyCaller } from "#domain/Caller.ts"
import { ApiKeyRequired } from "#domain/Confirmation.ts"
import { Identity, type InvalidApiKey } from "#domain/Identity.ts"
import { RateLimitExceeded, RateLimits } from "#domain/RateLimits.ts"
import type { StoreUnavailable } from "#domain/StoreUnavailable.ts"
import { clientNetwork, TrustedProxies } from "#http/ClientAddress.ts"
import * as Errors from "#http/Errors.ts"
import { RequestScope } from "#http/RequestScope.ts"

/** The caller of the request being served. */
export class CurrentCaller extends Context.Service<CurrentCaller, Caller>()("vatproof/http/CurrentCaller") {}

/** The header that carries an API key. */
const apiKey = HttpApiSecurity.apiKey({ key: "X-Api-Key", in: "header" })

/** Lets a caller without a key pass as an anonymous one. A key that is sent and wrong is refused, never ignored. */
export class KeyOptional extends HttpApiMiddleware.Service<KeyOptional, { provides: CurrentCaller }>()(
  "vatproof/http/KeyOptional",
  { security: { apiKey } }
) {}

/** The API key of the request being served, where one is required. */
export class CurrentKey extends Context.Service<CurrentKey, KeyCaller>()("vatproof/http/CurrentKey") {}

/** Refuses anonymous callers. */
export class KeyRequired extends HttpApiMiddleware.Service<KeyRequired, { provides: CurrentKey }>()("vatproof/http/KeyRequired", {
  security: { apiKey }
}) {}

/** Counts the call in the caller's minute, also if it is refused later. */
export class MinuteLimit extends HttpApiMiddleware.Service<MinuteLimit, { requires: CurrentCaller }>()(
  "vatproof/http/MinuteLimit"
) {}

export const layerKeyOptional = Layer.effect(
  KeyOptional,
  Effect.gen(function* () {
    const identity = yield* Identity
    const proxies = yield* TrustedProxies
    return {
      apiKey: Effect.fnUntraced(function* (httpEffect, { credential }) {
        const request = yield* HttpServerRequest.HttpServerRequest
        const sent = request.headers["x-api-key"] !== undefined
        const identified: Effect.Effect<Caller, InvalidApiKey | StoreUnavailable> = sent
          ? identity.byKey(credential)
          : identity.byAddress(clientNetwork(request, proxies.count))
        const caller = yield* Effect.result(identified)
        if (caller._tag === "Failure") return yield* Errors.respond(Effect.fail(caller.failure))
        MutableRef.set((yield* RequestScope).usage, caller.success.usage)
        return yield* Effect.provideService(httpEffect, CurrentCaller, caller.success)
      })
    }
  })
)

export const layerKeyRequired = Layer.effect(
  KeyRequired,
  Effect.gen(function* () {
    const identity = yield* Identity
    return {
      apiKey: Effect.fnUntraced(function* (httpEffect, { credential }) {
        const request = yield* HttpServerRequest.HttpServerRequest
        if (request.headers["x-api-key"] === undefined) {
          return yield* Errors.respond(Effect.fail(new ApiKeyRequired({ message: "Send an API key in the header X-Api-Key" })))
        }
        const caller = yield* Effect.result(identity.byKey(credential))
        if (caller._tag === "Failure") return yield* Errors.respond(Effect.fail(caller.failure))
        MutableRef.set((yield* RequestScope).usage, caller.success.usage)
        return yield* Effect.provideService(httpEffect, CurrentKey, caller.success)
      })
    }
  })
)

export const layerMinuteLimit = Layer.effect(
  MinuteLimit,
  Effect.gen(function* () {
    const rateLimits = yield* RateLimits
    return Effect.fnUntraced(function* (httpEffect) {
      const caller = yield* CurrentCaller
      const counted = yield* Effect.result(rateLimits.countInMinute(caller.stream, caller.perMinute))
      if (counted._tag === "Failure") return yield* Errors.respond(Effect.fail(counted.failure))
      const window = counted.success
      MutableRef.set((yield* RequestScope).window, window)
      if (window.remaining >= 0) return yield* httpEffect
      const message = `At most ${window.limit} validations a minute`
      return yield* Errors.respond(Effect.fail(new RateLimitExceeded({ message, retryAfterSeconds: window.resetSeconds })))
    })
  })
)
