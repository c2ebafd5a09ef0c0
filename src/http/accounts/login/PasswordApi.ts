/** Declares the endpoints that set a new password: with the token of a mail, or with the current password (rule 51). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { NewPassword } from "#domain/accounts/login/Passwords.ts"
import { LoginRequired } from "#http/pipeline/Authentication.ts"
import { bodyRefusals, errorBody } from "#http/pipeline/Errors.ts"
import { LoggedIn } from "#http/accounts/login/LoginApi.ts"
import { DecodeErrors } from "#http/pipeline/DecodeErrors.ts"
import * as MediaTypes from "#http/wire/MediaTypes.ts"

const unavailable = errorBody("SERVICE_UNAVAILABLE")
const tooMany = errorBody("RATE_LIMIT_EXCEEDED")

const newPassword = NewPassword.annotate({
  description: "8 to 256 characters; the most common passwords are refused",
  examples: ["correct horse battery"]
})

const token = Schema.String.annotate({
  description: "The token of the mail, 64 hex characters",
  examples: ["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"]
})

const Requested = Schema.Struct({ message: Schema.String }).annotate({
  identifier: "PasswordResetRequested",
  description: "A mail is sent if an account has this address. The response does not tell whether one has"
})
const Changed = Schema.Struct({ message: Schema.String }).annotate({
  identifier: "PasswordReset",
  description: "The password is set"
})
const Reset = Schema.Struct({ token, password: newPassword }).annotate({ title: "PasswordReset" })

const page = MediaTypes.page("The result as a page")

const request = HttpApiEndpoint.post("requestPasswordReset", "/v1/auth/password-reset", {
  payload: Schema.Struct({
    email: Schema.String.annotate({
      description: "The address of the signup or registration, case-insensitive",
      format: "email",
      examples: ["ada@example.com"]
    })
  }).annotate({ title: "PasswordResetRequest" }),
  success: Requested.pipe(HttpApiSchema.status(202)),
  error: [errorBody("VALIDATION_ERROR"), ...bodyRefusals, tooMany, unavailable]
}).annotateMerge(
  OpenApi.annotations({
    identifier: "requestPasswordReset",
    summary: "Request a mail to set a new password",
    description:
      "Sends a mail with a link to set a new password, if an account has this address. Response and response time do not tell whether one has. An account gets at most one mail in 10 minutes and five in 24 hours."
  })
)

const show = HttpApiEndpoint.get("showPasswordReset", "/v1/auth/password-reset", {
  query: { token },
  success: MediaTypes.page("A page with a form for the new password"),
  error: errorBody("VALIDATION_ERROR")
}).annotateMerge(
  OpenApi.annotations({
    identifier: "showPasswordReset",
    summary: "Open the page of a password mail",
    description:
      "The link of the mail opens this page. It has a form for the new password, in English or German by Accept-Language. The request changes nothing and does not check the token."
  })
)

const reset = HttpApiEndpoint.post("resetPassword", "/v1/auth/password-reset/confirm", {
  payload: [Reset, Reset.pipe(HttpApiSchema.asFormUrlEncoded())],
  success: [Changed, page],
  error: [
    errorBody("INVALID_TOKEN", "TOKEN_EXPIRED", "VALIDATION_ERROR"),
    page.pipe(HttpApiSchema.status(400)),
    ...bodyRefusals,
    tooMany,
    page.pipe(HttpApiSchema.status(429)),
    unavailable,
    page.pipe(HttpApiSchema.status(503))
  ]
}).annotateMerge(
  OpenApi.annotations({
    identifier: "resetPassword",
    summary: "Set a new password with the token of the mail",
    description:
      "Sets the password of the account that got the mail. A token works once, within one hour. All logins of the account end, and its address is confirmed. If no mail confirmed it before, the API keys of the account are revoked, because a stranger may have made the account. A client whose Accept prefers text/html gets a page; other clients get JSON."
  })
)

const change = HttpApiEndpoint.post("changePassword", "/v1/auth/password", {
  payload: Schema.Struct({
    current_password: Schema.String.annotate({ format: "password", examples: ["correct horse battery"] }),
    new_password: newPassword
  }).annotate({ title: "PasswordChange" }),
  success: LoggedIn,
  error: [errorBody("VALIDATION_ERROR"), ...bodyRefusals, errorBody("UNAUTHORIZED"), tooMany, unavailable]
}).annotateMerge(
  OpenApi.annotations({
    identifier: "changePassword",
    summary: "Change the password",
    description:
      "Sets a new password. All logins of the account end, including that of this request. The response has a new token."
  })
)

export class PasswordApi extends HttpApiGroup.make("passwords")
  .add(request.middleware(DecodeErrors))
  .add(show.middleware(DecodeErrors))
  .add(reset.middleware(DecodeErrors))
  .add(change.middleware(DecodeErrors).middleware(LoginRequired))
  .annotateMerge(OpenApi.annotations({ title: "Passwords", description: "Set a new password, which ends all logins." })) {}
