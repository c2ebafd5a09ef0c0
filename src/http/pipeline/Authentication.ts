/** Authenticates requests by API key or access token, and identifies clients without an API key by their IP address (rules 12, 14). */
import { Context, Effect, Layer, MutableRef, Redacted, Result } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiMiddleware, HttpApiSecurity } from "effect/http-api"
import type { Session } from "#domain/accounts/AccessTokens.ts"
import type { KeyCaller } from "#domain/callers/Caller.ts"
import { ApiKeyReplaced } from "#domain/accounts/keys/RevokeApiKey.ts"
import { ApiKeyRequired } from "#domain/receipts/ConfirmationRules.ts"
import { type Credential, Identity } from "#domain/callers/Identity.ts"
import { LogIn } from "#domain/accounts/login/LogIn.ts"
import { clientNetwork, TrustedProxies } from "#http/pipeline/ClientAddress.ts"
import * as FailureResponses from "#http/pipeline/FailureResponses.ts"
import { ResponseHints } from "#http/pipeline/ResponseHints.ts"

/** The security scheme of API keys: the header X-Api-Key. */
const apiKey = HttpApiSecurity.apiKey({ key: "X-Api-Key", in: "header" })

/** Declares an optional API key in the OpenAPI document. The handler of the endpoint identifies the caller itself. */
export class KeyAllowed extends HttpApiMiddleware.Service<KeyAllowed>()("vatproof/http/pipeline/KeyAllowed", {
  security: { apiKey }
}) {}

/** The caller that the API key of the current request identifies. `KeyRequired` provides it. */
export class CurrentKey extends Context.Service<CurrentKey, KeyCaller>()("vatproof/http/pipeline/CurrentKey") {}

/** Rejects requests without a valid API key. */
export class KeyRequired extends HttpApiMiddleware.Service<KeyRequired, { provides: CurrentKey }>()(
  "vatproof/http/pipeline/KeyRequired",
  {
    security: { apiKey }
  }
) {}

/** Matches an API key in the Authorization header: alone, after any scheme, or in Basic credentials (`svc_` is `c3ZjX…` in Base64). */
const keyAsAuthorization = /(?:^| )(?:svc_|c3ZjX)/iu
/** Matches a query parameter that contains an API key or has a name like `api_key`. It has no repetition, so a long URL takes linear time. */
const keyInQuery = /[?&](?:x[-_]?)?api[-_]?key=|=svc_/iu

/**
 * Returns the error for an API key in the header Authorization or in the URL; null if there is none. Without this check the service would
 * ignore the key and treat the caller as anonymous.
 */
const misplacedKey = ({ headers, url }: HttpServerRequest.HttpServerRequest) => {
  if (keyAsAuthorization.test(headers["authorization"] ?? "")) return useTheHeader("not in the header Authorization")
  return keyInQuery.test(url) ? useTheHeader("not in the URL, where logs and proxies see it") : null
}
const useTheHeader = (where: string) => new ApiKeyRequired({ message: `Send the API key in the header X-Api-Key, ${where}` })

/**
 * Creates a function that returns a request's credential: its API key, or its client address if it has none. The function does not check
 * whether the key is valid.
 */
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

/**
 * Creates a function that returns the pseudonym of a request's client. The pseudonym contains a keyed hash of the client's IP address.
 * Limits on signups and logins apply to each pseudonym.
 */
export const makeClientOf = Effect.zipWith(
  Identity,
  TrustedProxies,
  (identity, { count }) =>
    (request: HttpServerRequest.HttpServerRequest) =>
      identity.byAddress(clientNetwork(request, count)).stream
)

/** Matches the paths to which a validation or a batch is submitted. */
const submissions = /^\/v1\/(?:validations|batches)(?:\?|$)/u

/** The request changes something other than a new validation: it cancels, shares, rotates or revokes. */
const isChange = ({ method, url }: HttpServerRequest.HttpServerRequest) =>
  method === "DELETE" || (method === "POST" && !submissions.test(url))

/**
 * Creates a function that returns the caller of a request's API key, read from the database instead of the cache. It also stores the
 * caller's usage for the response headers. A missing, misplaced or invalid key is an error, and so is a change with a former secret.
 */
export const makeKeyCallerOf = Effect.map(Identity, (identity) =>
  Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
    const key = request.headers["x-api-key"]
    if (key === undefined)
      return yield* misplacedKey(request) ?? new ApiKeyRequired({ message: "Send an API key in the header X-Api-Key" })
    const caller = yield* identity.refresh(Redacted.make(key))
    const { limit, used } = caller
    MutableRef.set((yield* ResponseHints).standing, { usage: { used, limit }, window: null })
    if (caller.isFormer && isChange(request)) return yield* new ApiKeyReplaced({})
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

/** The session of the current request. `LoginRequired` provides it. */
export class CurrentAccount extends Context.Service<CurrentAccount, Session>()("vatproof/http/pipeline/CurrentAccount") {}

/** Rejects requests without a valid access token of a login. */
export class LoginRequired extends HttpApiMiddleware.Service<LoginRequired, { provides: CurrentAccount }>()(
  "vatproof/http/pipeline/LoginRequired",
  { security: { bearer: HttpApiSecurity.bearer } }
) {}

/**
 * Returns the response to a failed authentication. If the access token is invalid, the response has the header WWW-Authenticate (RFC
 * 9110, 15.5.2). If the API key is invalid, the header is missing, because API keys have no registered scheme.
 */
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
        const session = yield* Effect.result(byToken(credential))
        if (session._tag === "Failure") return yield* refuseLogin(session.failure)
        return yield* Effect.provideService(httpEffect, CurrentAccount, session.success)
      })
    }
  })
)

/** The owner whose receipts the current request may read: the id of an API key or of an account. `ReceiptReaderRequired` provides it. */
export class CurrentReceiptReader extends Context.Service<CurrentReceiptReader, { readonly ownerId: string }>()(
  "vatproof/http/pipeline/CurrentReceiptReader"
) {}

/** Rejects requests without a valid API key or access token. */
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

    // If one security scheme fails, the library tries the next scheme. A request with a wrong API key and a valid access token would
    // therefore be accepted. `identify` prevents this: it checks both schemes itself, and returns a response instead of a failure.
    const identify = Effect.fnUntraced(function* <A, E, R>(httpEffect: Effect.Effect<A, E, R>) {
      const owner = yield* Effect.result(ownerOf)
      if (owner._tag === "Failure") return yield* refuseLogin(owner.failure)
      return yield* Effect.provideService(httpEffect, CurrentReceiptReader, { ownerId: owner.success })
    })
    return { apiKey: identify, bearer: identify }
  })
)
