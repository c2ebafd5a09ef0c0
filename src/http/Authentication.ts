/** Who is calling: an API key, or, where that is allowed, nobody in particular (INTERFACE 5, DECISIONS 9). */
import { Context, Effect, Layer, MutableRef, Redacted } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiMiddleware, HttpApiSecurity } from "effect/http-api"
import type { Caller, KeyCaller } from "#domain/Caller.ts"
import { ApiKeyRequired } from "#domain/Confirmation.ts"
import { type Admitted, Identity, type InvalidApiKey } from "#domain/Identity.ts"
import { LogIn } from "#domain/LogIn.ts"
import { tooManyInMinute } from "#domain/RateLimits.ts"
import { RepeatAnswer } from "#domain/RepeatAnswer.ts"
import type { StoreUnavailable } from "#domain/StoreUnavailable.ts"
import { clientNetwork, TrustedProxies } from "#http/ClientAddress.ts"
import * as Errors from "#http/Errors.ts"
import { RequestScope } from "#http/RequestScope.ts"

/** The caller of the request being served. */
export class CurrentCaller extends Context.Service<CurrentCaller, Caller>()("vatproof/http/CurrentCaller") {}

/** The header that carries an API key. */
const apiKey = HttpApiSecurity.apiKey({ key: "X-Api-Key", in: "header" })

/**
 * Lets a caller without a key pass as an anonymous one; a key that is sent and wrong is refused, never ignored. Counts the call in the
 * caller's minute, also if it is refused later, and refuses it if that is full.
 */
export class Admission extends HttpApiMiddleware.Service<Admission, { provides: CurrentCaller }>()("vatproof/http/Admission", {
  security: { apiKey }
}) {}

/** The API key of the request being served, where one is required. */
export class CurrentKey extends Context.Service<CurrentKey, KeyCaller>()("vatproof/http/CurrentKey") {}

/** Refuses anonymous callers. */
export class KeyRequired extends HttpApiMiddleware.Service<KeyRequired, { provides: CurrentKey }>()("vatproof/http/KeyRequired", {
  security: { apiKey }
}) {}

export const layerAdmission = Layer.effect(
  Admission,
  Effect.gen(function* () {
    const identity = yield* Identity
    const proxies = yield* TrustedProxies
    const { rememberCaller } = yield* RepeatAnswer
    return {
      apiKey: Effect.fnUntraced(function* (httpEffect, { credential }) {
        const request = yield* HttpServerRequest.HttpServerRequest
        const sent = request.headers["x-api-key"] !== undefined
        const admission: Effect.Effect<Admitted, InvalidApiKey | StoreUnavailable> = sent
          ? identity.admitByKey(credential)
          : identity.admitByAddress(clientNetwork(request, proxies.count))
        const admitted = yield* Effect.result(admission)
        if (admitted._tag === "Failure") return yield* Errors.respond(Effect.fail(admitted.failure))
        const { caller, window } = admitted.success
        const { usage, window: shown } = yield* RequestScope
        MutableRef.set(usage, caller.usage)
        MutableRef.set(shown, window)
        if (caller._tag === "Key") rememberCaller(Redacted.value(credential), caller)
        if (window.remaining < 0) return yield* Errors.respond(Effect.fail(tooManyInMinute(window)))
        return yield* Effect.provideService(httpEffect, CurrentCaller, caller)
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

/** The account of the request being served, where a person logged in to it. */
export class CurrentAccount extends Context.Service<CurrentAccount, { readonly accountId: string }>()(
  "vatproof/http/CurrentAccount"
) {}

/** Refuses everybody who did not log in. */
export class LoginRequired extends HttpApiMiddleware.Service<LoginRequired, { provides: CurrentAccount }>()(
  "vatproof/http/LoginRequired",
  { security: { bearer: HttpApiSecurity.bearer } }
) {}

export const layerLoginRequired = Layer.effect(
  LoginRequired,
  Effect.gen(function* () {
    const { byToken } = yield* LogIn
    return {
      bearer: Effect.fnUntraced(function* (httpEffect, { credential }) {
        const found = yield* Effect.result(byToken(credential))
        if (found._tag === "Failure") {
          const refusal = yield* Errors.respond(Effect.fail(found.failure))
          // RFC 9110, 15.5.2: a 401 says how to authenticate. API keys have no registered scheme.
          return found.failure._tag === "InvalidAccessToken"
            ? HttpServerResponse.setHeader(refusal, "www-authenticate", "Bearer")
            : refusal
        }
        return yield* Effect.provideService(httpEffect, CurrentAccount, { accountId: found.success })
      })
    }
  })
)
