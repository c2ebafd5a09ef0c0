/** Declares POST /v1/auth/login (rules 50, 51). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { bodyRefusals, errorBody } from "#http/pipeline/Errors.ts"
import { DecodeErrors } from "#http/pipeline/DecodeErrors.ts"

/**
 * The body of a login. The schema does not enforce the rules for addresses and passwords of signups. No account has an address or
 * password that violates these rules, so the response is a 401.
 */
const Login = Schema.Struct({
  email: Schema.String.annotate({
    description: "The address of the signup, case-insensitive",
    format: "email",
    examples: ["ada@example.com"]
  }),
  password: Schema.String.annotate({ format: "password", examples: ["correct horse battery"] })
}).annotate({ title: "Login" })

export const LoggedIn = Schema.Struct({
  token: Schema.String.annotate({ description: "A JWT, to send as Authorization: Bearer" }),
  expires_in: Schema.Int.annotate({ description: "Lifetime of the token in seconds", examples: [86_400] })
}).annotate({ identifier: "LoggedIn", description: "A token for the endpoints that need a login" })

export class LoginApi extends HttpApiGroup.make("login")
  .add(
    HttpApiEndpoint.post("login", "/v1/auth/login", {
      payload: Login,
      success: LoggedIn,
      error: [
        errorBody("VALIDATION_ERROR"),
        ...bodyRefusals,
        errorBody("UNAUTHORIZED"),
        errorBody("RATE_LIMIT_EXCEEDED"),
        errorBody("SERVICE_UNAVAILABLE")
      ]
    }).annotateMerge(
      OpenApi.annotations({
        identifier: "logIn",
        summary: "Log in",
        description:
          "Returns an access token. After too many failed logins from one client address further ones are 429. After too many failed logins of one account from many addresses each attempt takes two seconds longer; the right password still works."
      })
    )
  )
  .middleware(DecodeErrors)
  .annotateMerge(OpenApi.annotations({ title: "Login", description: "A token for the endpoints that manage API keys." })) {}
