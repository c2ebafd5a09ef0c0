/** Who is calling: an API key, or, where that is allowed, a client without one (rules 12, 14). */
import { Context, Effect, Layer, MutableRef, Redacted, Result } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiMiddleware, HttpApiSecurity } from "effect/http-api"
import type { Session } from "#domain/accounts/AccessTokens.ts"
import type { KeyCaller } from "#domain/callers/Caller.ts"
import { ApiKeyRequired } from "#domain/receipts/Confirmation.ts"
import { type Credential, Identity } from "#domain/callers/Identity.ts"
import { LogIn } from "#domain/login/LogIn.ts"
import { clientNetwork, TrustedProxies } from "#http/pipeline/ClientAddress.ts"
import * as Errors from "#http/pipeline/Errors.ts"
import { ResponseHints } from "#http/pipeline/ResponseHints.ts"

/** The header that carries an API key. */
const apiKey = HttpApiSecurity.apiKey({ key: "X-Api-Key", in: "header" })

/** Describes that an API key may be sent. The route of the endpoint identifies the caller itself. */
export class KeyAllowed extends HttpApiMiddleware.Service<KeyAllowed>()("vatproof/http/pipeline/KeyAllowed", {
  security: { apiKey }
}) {}

/** The API key of the request being served, where one is required. */
export class CurrentKey extends Context.Service<CurrentKey, KeyCaller>()("vatproof/http/pipeline/CurrentKey") {}

/** Refuses clients without an API key. */
export class KeyRequired extends HttpApiMiddleware.Service<KeyRequired, { provides: CurrentKey }>()(
  "vatproof/http/pipeline/KeyRequired",
  {
    security: { apiKey }
  }
) {}

/** A key in the Authorization header, by itself, after any scheme or in Basic credentials (`c3ZjX2` is `svc_` in Base64). */
const keyAsAuthorization = /(?:^| )(?:svc_|c3ZjX)/iu
/** A key in the query, or a parameter that is named after one. */
const keyInQuery = /[?&](?:(?:x[-_]?)?api[-_]?key=|[^=&]*=svc_)/iu

/** Whether the client sends a key elsewhere than in X-Api-Key. To ignore it would make the caller an anonymous one without a word. */
const misplacedKey = ({ headers, url }: HttpServerRequest.HttpServerRequest) => {
  if (keyAsAuthorization.test(headers["authorization"] ?? "")) return useTheHeader("not in the header Authorization")
  return keyInQuery.test(url) ? useTheHeader("not in the URL, where logs and proxies see it") : null
}
const useTheHeader = (where: string) => new ApiKeyRequired({ message: `Send the API key in the header X-Api-Key, ${where}` })

/** Gives a function from a request to what its client presents. A key that is sent and wrong is refused later, never ignored. */
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

/** Gives a function from a request to the caller of its API key, read now. Notes how the caller stands. */
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
        if (caller._tag === "Failure") return yield* Errors.respond(Effect.fail(caller.failure))
        return yield* Effect.provideService(httpEffect, CurrentKey, caller.success)
      })
    }
  })
)

/** The account of the request being served, where a person logged in to it. */
export class CurrentAccount extends Context.Service<CurrentAccount, Session>()("vatproof/http/pipeline/CurrentAccount") {}

/** Refuses everybody who did not log in. */
export class LoginRequired extends HttpApiMiddleware.Service<LoginRequired, { provides: CurrentAccount }>()(
  "vatproof/http/pipeline/LoginRequired",
  { security: { bearer: HttpApiSecurity.bearer } }
) {}

/** RFC 9110, 15.5.2: a 401 says how to authenticate. API keys have no registered scheme. */
const refuseLogin = (failure: Errors.Failure) =>
  Effect.map(Errors.failureResponse(failure), (refusal) =>
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

/** Whose receipts are asked for: the id of an API key or of an account. */
export class CurrentReceiptReader extends Context.Service<CurrentReceiptReader, { readonly ownerId: string }>()(
  "vatproof/http/pipeline/CurrentReceiptReader"
) {}

/** Lets API keys pass, and people who logged in. */
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

    // The first of the two schemes decides for both, because a key that is sent and wrong must be refused and not passed over.
    const identify = Effect.fnUntraced(function* <A, E, R>(httpEffect: Effect.Effect<A, E, R>) {
      const owner = yield* Effect.result(ownerOf)
      if (owner._tag === "Failure") return yield* refuseLogin(owner.failure)
      return yield* Effect.provideService(httpEffect, CurrentReceiptReader, { ownerId: owner.success })
    })
    return { apiKey: identify, bearer: identify }
  })
)
