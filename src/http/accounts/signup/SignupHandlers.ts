import { Effect, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { RequestContext } from "#domain/kernel/RequestContext.ts"
import { isBrowser, SignUp } from "#domain/accounts/signup/SignUp.ts"
import { VerifyEmail } from "#domain/accounts/signup/VerifyEmail.ts"
import { DecodedApi } from "#http/Api.ts"
import { makeClientOf } from "#http/pipeline/Authentication.ts"
import * as FailureResponses from "#http/pipeline/FailureResponses.ts"
import * as Errors from "#http/pipeline/Errors.ts"
import * as Negotiation from "#http/wire/Negotiation.ts"
import * as VerificationPage from "#http/accounts/signup/VerificationPage.ts"

const mailSent = "Your account is created. Open the link in the mail we sent you to confirm your address, then log in"
const verifiedAtOnce = "Your account is created and verified: the token is valid for 24 hours"
const confirmed = "Your email address is confirmed. You can log in now"
const confirmedOnly =
  "Your email address is confirmed. It was signed up with different passwords, so none of them is set. Request a mail to set one: POST /v1/auth/password-reset"

export const layer = HttpApiBuilder.group(
  DecodedApi,
  "signup",
  Effect.fnUntraced(function* (handlers) {
    const clientOf = yield* makeClientOf
    const { signUp } = yield* SignUp
    const verification = yield* VerifyEmail
    const { sha256Hex } = yield* Crypto

    /** Handles GET and POST: verifies the token of a mail, and responds with JSON or, to a browser, with a page. */
    const verify = Effect.fnUntraced(function* (token: string) {
      const request = yield* HttpServerRequest.HttpServerRequest
      // A HEAD only checks the token: mail scanners open links with HEAD, which must not change anything (RFC 9110, 9.3.2).
      const run = request.method === "HEAD" ? verification.check : verification.verify
      const outcome = run(Redacted.make(token))
      if (!Negotiation.prefersPage(request.headers["accept"])) {
        const result = Effect.map(outcome, ({ hasPassword }) => ({ message: hasPassword ? confirmed : confirmedOnly }))
        return yield* FailureResponses.respond(result)
      }
      const language = Negotiation.language(request.headers["accept-language"], VerificationPage.languages)
      const { requestId } = yield* RequestContext
      return yield* Effect.matchEffect(outcome, {
        onSuccess: ({ hasPassword }) => {
          const result = hasPassword ? "confirmed" : "confirmedOnly"
          return Effect.succeed(VerificationPage.respond({ status: 200, language, outcome: result, requestId }, sha256Hex))
        },
        onFailure: Effect.fnUntraced(function* (failure) {
          const { code, retryAfterSeconds }: Errors.Problem = yield* FailureResponses.problemOf(failure)
          const outcome = outcomeOf[failure._tag]
          return VerificationPage.respond(
            { status: Errors.statusOf(code), language, outcome, requestId, retryAfterSeconds },
            sha256Hex
          )
        })
      })
    })

    return handlers.handleAll({
      signup: Effect.fnUntraced(function* ({ payload }) {
        const request = yield* HttpServerRequest.HttpServerRequest
        const { accountId, token } = yield* signUp({
          client: clientOf(request),
          email: payload.email,
          password: Redacted.make(payload.password),
          browser: isBrowser(request.headers["user-agent"])
        })
        return token === null
          ? { message: mailSent, user_id: accountId }
          : { message: verifiedAtOnce, user_id: accountId, token: Redacted.value(token), auto_verified: true as const }
      }, FailureResponses.respond),
      verifyEmail: ({ query }) => verify(query.token),
      postVerifyEmail: ({ payload }) => verify(payload.token)
    })
  })
)

const outcomeOf = {
  InvalidToken: "unusable",
  TokenExpired: "expired",
  StoreUnavailable: "unavailable"
} as const
