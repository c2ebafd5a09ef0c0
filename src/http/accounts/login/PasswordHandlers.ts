import { Duration, Effect, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { accessTokenLifetime } from "#domain/accounts/AccessTokens.ts"
import { ChangePassword } from "#domain/accounts/login/ChangePassword.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { RequestContext } from "#domain/kernel/RequestContext.ts"
import { ResetPassword } from "#domain/accounts/login/ResetPassword.ts"
import { DecodedApi } from "#http/Api.ts"
import { CurrentAccount, makeClientOf } from "#http/pipeline/Authentication.ts"
import * as FailureResponses from "#http/pipeline/FailureResponses.ts"
import * as Errors from "#http/pipeline/Errors.ts"
import * as Negotiation from "#http/wire/Negotiation.ts"
import * as PasswordPage from "#http/accounts/login/PasswordPage.ts"

const requested = "If an account has this address, a mail with a link to set a new password is sent"
const changed =
  "The password is set and all logins have ended. If no mail confirmed the address before, all earlier API keys are revoked. Log in with the new password"

export const layer = HttpApiBuilder.group(
  DecodedApi,
  "passwords",
  Effect.fnUntraced(function* (handlers) {
    const clientOf = yield* makeClientOf
    const passwordReset = yield* ResetPassword
    const passwordChange = yield* ChangePassword
    const { sha256Hex } = yield* Crypto

    const reset = Effect.fnUntraced(function* (token: string, password: string) {
      const request = yield* HttpServerRequest.HttpServerRequest
      const outcome = passwordReset
        .reset({ client: clientOf(request), token: Redacted.make(token), password: Redacted.make(password) })
        .pipe(Effect.as({ message: changed }))
      if (!Negotiation.prefersPage(request.headers["accept"])) return yield* FailureResponses.respond(outcome)
      const page = { language: languageOf(request), requestId: (yield* RequestContext).requestId }
      return yield* Effect.matchEffect(outcome, {
        onSuccess: () => Effect.succeed(PasswordPage.respond({ ...page, status: 200, outcome: "changed" }, sha256Hex)),
        onFailure: Effect.fnUntraced(function* (failure) {
          const { code, retryAfterSeconds }: Errors.Problem = yield* FailureResponses.problemOf(failure)
          const result = { status: Errors.statusOf(code), outcome: outcomeOf[failure._tag], retryAfterSeconds }
          return PasswordPage.respond({ ...page, ...result }, sha256Hex)
        })
      })
    })

    return handlers.handleAll({
      requestPasswordReset: Effect.fnUntraced(function* ({ payload }) {
        const request = yield* HttpServerRequest.HttpServerRequest
        yield* passwordReset.request({ client: clientOf(request), email: payload.email })
        return { message: requested }
      }, FailureResponses.respond),
      showPasswordReset: Effect.fnUntraced(function* ({ query }) {
        return PasswordPage.ask(languageOf(yield* HttpServerRequest.HttpServerRequest), query.token, sha256Hex)
      }),
      resetPassword: ({ payload }) => reset(payload.token, payload.password),
      changePassword: Effect.fnUntraced(function* ({ payload }) {
        const request = yield* HttpServerRequest.HttpServerRequest
        const token = yield* passwordChange.change({
          client: clientOf(request),
          session: yield* CurrentAccount,
          current: Redacted.make(payload.current_password),
          next: Redacted.make(payload.new_password)
        })
        return { token: Redacted.value(token), expires_in: Duration.toSeconds(accessTokenLifetime) }
      }, FailureResponses.respond)
    })
  })
)

const languageOf = ({ headers }: HttpServerRequest.HttpServerRequest) =>
  Negotiation.language(headers["accept-language"], PasswordPage.languages)

const outcomeOf = {
  CommonPassword: "common",
  InvalidToken: "unusable",
  TokenExpired: "expired",
  PasswordsBusy: "unavailable",
  RateLimitExceeded: "unavailable",
  StoreUnavailable: "unavailable"
} as const
