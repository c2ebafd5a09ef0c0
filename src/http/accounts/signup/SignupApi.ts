/** Declares POST /v1/auth/signup, GET and POST /v1/auth/verify-email (rules 47-49). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { EmailAddress } from "#domain/accounts/email/EmailAddress.ts"
import { NewPassword } from "#domain/accounts/login/Passwords.ts"
import { bodyRefusals, errorBody } from "#http/pipeline/Errors.ts"
import { DecodeErrors } from "#http/pipeline/DecodeErrors.ts"
import * as MediaTypes from "#http/wire/MediaTypes.ts"

const unavailable = errorBody("SERVICE_UNAVAILABLE")

const Signup = Schema.Struct({
  email: EmailAddress.annotate({
    format: "email",
    description: "An address that is not disposable",
    examples: ["ada@example.com"]
  }),
  password: NewPassword.annotate({
    description: "8 to 256 characters; the most common passwords are refused",
    examples: ["correct horse battery"]
  })
}).annotate({ title: "Signup" })

const SignedUp = Schema.Struct({
  message: Schema.String,
  user_id: Schema.String.annotate({ description: "The account's id", format: "uuid" }),
  token: Schema.optionalKey(
    Schema.String.annotate({ description: "A JWT for the endpoints that need a login, valid for 24 hours" })
  ),
  auto_verified: Schema.optionalKey(
    Schema.Literal(true).annotate({ description: "The account is verified without a mail and can log in at once" })
  )
}).annotate({ identifier: "SignedUp", description: "The new account" })

const Verified = Schema.Struct({ message: Schema.String }).annotate({
  identifier: "EmailVerified",
  description: "The address is confirmed"
})

const token = {
  token: Schema.String.annotate({
    description: "The token of the mail, 64 hex characters",
    examples: ["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"]
  })
}

const page = MediaTypes.page("The result as a page")
const verified = [Verified, page] as const
const tokenErrors = [
  errorBody("INVALID_TOKEN", "TOKEN_EXPIRED", "VALIDATION_ERROR"),
  page.pipe(HttpApiSchema.status(400)),
  unavailable,
  page.pipe(HttpApiSchema.status(503))
] as const
const verification =
  "Confirms the email address of an account by the token of the mail. A token works once, within 24 hours. A client whose Accept prefers text/html gets a page, in English or German by its Accept-Language; " +
  "other clients get JSON."

export class SignupApi extends HttpApiGroup.make("signup")
  .add(
    HttpApiEndpoint.post("signup", "/v1/auth/signup", {
      payload: Signup,
      success: SignedUp.pipe(HttpApiSchema.status(201)),
      error: [
        errorBody("VALIDATION_ERROR", "DISPOSABLE_EMAIL"),
        ...bodyRefusals,
        errorBody("CONFLICT"),
        errorBody("RATE_LIMIT_EXCEEDED"),
        unavailable
      ]
    }).annotateMerge(
      OpenApi.annotations({
        identifier: "signUp",
        summary: "Create an account with a password",
        description:
          "Creates an account. The user of a browser gets a mail with a link that confirms the address. A client whose User-Agent does not contain Mozilla/ is verified at once and gets a token."
      })
    )
  )
  .add(
    HttpApiEndpoint.get("verifyEmail", "/v1/auth/verify-email", {
      query: token,
      success: verified,
      error: tokenErrors
    }).annotateMerge(
      OpenApi.annotations({
        identifier: "verifyEmailByLink",
        summary: "Confirm an email address by a link",
        description: verification
      })
    )
  )
  .add(
    HttpApiEndpoint.post("postVerifyEmail", "/v1/auth/verify-email", {
      payload: Schema.Struct(token).annotate({ title: "EmailVerification" }),
      success: verified,
      error: [...tokenErrors, ...bodyRefusals]
    }).annotateMerge(
      OpenApi.annotations({ identifier: "verifyEmail", summary: "Confirm an email address", description: verification })
    )
  )
  .middleware(DecodeErrors)
  .annotateMerge(
    OpenApi.annotations({
      title: "Signup",
      description: "An account with a password, and the confirmation of its email address."
    })
  ) {}
