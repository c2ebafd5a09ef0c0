/** Authenticates callers: an API key, or where allowed a client without one (rules 12, 14). */
import { Context, Effect, Layer, MutableRef, Redacted, Result } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiMiddleware, HttpApiSecurity } from "effect/http-api"
import type { Session } from "#domain/accounts/AccessTokens.ts"
import type { KeyCaller } from "#domain/callers/Caller.ts"
import { ApiKeyRequired } from "#domain/receipts/ConfirmationRules.ts"
import { type Credential, Identity } from "#domain/callers/Identity.ts"
import { LogIn } from "#domain/login/LogIn.ts"
import { clientNetwork, TrustedProxies } from "#http/pipeline/ClientAddress.ts"
import * as FailureResponses from "#http/pipeline/FailureResponses.ts"
import { ResponseHints } from "#http/pipeline/ResponseHints.ts"

/** The header that carries an API key. */
const apiKey = HttpApiSecurity.apiKey({ key: "X-Api-Key", in: "header" })

/** Documents that an API key may be sent. The route itself identifies the caller. */
export class KeyAllowed extends HttpApiMiddleware.Service<KeyAllowed>()("vatproof/http/pipeline/KeyAllowed", {
  security: { apiKey }
}) {}

/** The API key of the current request, where one is required. */
export class CurrentKey extends Context.Service<CurrentKey, KeyCaller>()("vatproof/http/pipeline/CurrentKey") {}

/** Rejects clients without an API key. */
export class KeyRequired extends HttpApiMiddleware.Service<KeyRequired, { provides: CurrentKey }>()(
  "vatproof/http/pipeline/KeyRequired",
  {
    security: { apiKey }
  }
) {}

/** A key in the Authorization header, alone, after any scheme or in Basic credentials (`c3ZjX2` is `svc_` in Base64). */
const keyAsAuthorization = /(?:^| )(?:svc_|c3ZjX)/iu
/** A key in the query, or a parameter with the name of one. */
const keyInQuery = /[?&](?:(?:x[-_]?)?api[-_]?key=|[^=&]*=svc_)/iu

/** Rejects a key that is sent elsewhere than in X-Api-Key. Ignoring it would silently make the caller anonymous. */
const misplacedKey = ({ headers, url }: HttpServerRequest.HttpServerRequest) => {
  if (keyAsAuthorization.test(headers["authorization"] ?? "")) return useTheHeader("not in the header Authorization")
  return keyInQuery.test(url) ? useTheHeader("not in the URL, where logs and proxies see it") : null
}
const useTheHeader = (where: string) => new ApiKeyRequired({ message: `Send the API key in the header X-Api-Key, ${where}` })

/** Creates a function that returns a request's credential. A wrong key is rejected later, never ignored. */
export const makeCredentialOf = Effect.map(
  TrustedProxies,
  ({ count }) =>
    (request: HttpServerRequest.HttpServerRequest): Result.Result<Credential, ApiKeyRequired> => {
      const key = request.headers["x-api-key"]
      if (key !== undefined) return Result.succeed({ _tag: "Key", key: Redacted.make(key) })
      const refusal = misplacedKey(request)
      if (refusal !== null) return Result.fail(refusal)
      return Result.succeed({ _tag: "Address", address: clientNetwork(request, count) })
    }
)

/** Creates a function that returns the caller of a request's API key, bypassing the cache. Stores the caller's standing. */
export const makeKeyCallerOf = Effect.map(Identity, (identity) =>
  Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
    const key = request.headers["x-api-key"]
    if (key === undefined)
      return yield* misplacedKey(request) ?? new ApiKeyRequired({ message: "Send an API key in the header X-Api-Key" })
    const caller = yield* identity.refresh(Redacted.make(key))
    const { limit, used } = caller
    MutableRef.set((yield* ResponseHints).standing, { usage: { used, limit }, window: null })
    return caller
  })
)

export const layerKeyRequired = Layer.effect(
  KeyRequired,
  Effect.gen(function* () {
    const keyCallerOf = yield* makeKeyCallerOf
    return {
      apiKey: Effect.fnUntraced(function* (httpEffect) {
        const caller = yield* Effect.result(keyCallerOf(yield* HttpServerRequest.HttpServerRequest))
        if (caller._tag === "Failure") return yield* FailureResponses.respond(Effect.fail(caller.failure))
        return yield* Effect.provideService(httpEffect, CurrentKey, caller.success)
      })
    }
  })
)

/** The account of the current request, after a login. */
export class CurrentAccount extends Context.Service<CurrentAccount, Session>()("vatproof/http/pipeline/CurrentAccount") {}

/** Rejects requests without a login. */
export class LoginRequired extends HttpApiMiddleware.Service<LoginRequired, { provides: CurrentAccount }>()(
  "vatproof/http/pipeline/LoginRequired",
  { security: { bearer: HttpApiSecurity.bearer } }
) {}

/** RFC 9110, 15.5.2: a 401 says how to authenticate. API keys have no registered scheme. */
const refuseLogin = (failure: FailureResponses.Failure) =>
  Effect.map(FailureResponses.failureResponse(failure), (refusal) =>
    failure._tag === "InvalidAccessToken" ? HttpServerResponse.setHeader(refusal, "www-authenticate", "Bearer") : refusal
  )

export const layerLoginRequired = Layer.effect(
  LoginRequired,
  Effect.gen(function* () {
    const { byToken } = yield* LogIn
    return {
      bearer: Effect.fnUntraced(function* (httpEffect, { credential }) {
        const found = yield* Effect.result(byToken(credential))
        if (found._tag === "Failure") return yield* refuseLogin(found.failure)
        return yield* Effect.provideService(httpEffect, CurrentAccount, found.success)
      })
    }
  })
)

/** The owner of the requested receipts: the id of an API key or of an account. */
export class CurrentReceiptReader extends Context.Service<CurrentReceiptReader, { readonly ownerId: string }>()(
  "vatproof/http/pipeline/CurrentReceiptReader"
) {}

/** Accepts API keys and logins. */
export class ReceiptReaderRequired extends HttpApiMiddleware.Service<ReceiptReaderRequired, { provides: CurrentReceiptReader }>()(
  "vatproof/http/pipeline/ReceiptReaderRequired",
  { security: { apiKey, bearer: HttpApiSecurity.bearer } }
) {}

export const layerReceiptReaderRequired = Layer.effect(
  ReceiptReaderRequired,
  Effect.gen(function* () {
    const { byToken } = yield* LogIn
    const keyCallerOf = yield* makeKeyCallerOf

    const ownerOf = Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const { authorization = "", "x-api-key": key } = request.headers
      const token = /^bearer +(\S+)$/iu.exec(authorization)?.[1]
      if (key !== undefined || token === undefined || misplacedKey(request) !== null) return (yield* keyCallerOf(request)).keyId
      return (yield* byToken(Redacted.make(token))).accountId
    })

    // The first of the two schemes decides for both, because a wrong key must be rejected and not ignored.
    const identify = Effect.fnUntraced(function* <A, E, R>(httpEffect: Effect.Effect<A, E, R>) {
      const owner = yield* Effect.result(ownerOf)
      if (owner._tag === "Failure") return yield* refuseLogin(owner.failure)
      return yield* Effect.provideService(httpEffect, CurrentReceiptReader, { ownerId: owner.success })
    })
    return { apiKey: identify, bearer: identify }
  })
)
