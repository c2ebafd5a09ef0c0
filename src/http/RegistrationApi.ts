/** POST /v1/register (INTERFACE 4.5). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { EmailAddress } from "#domain/EmailAddress.ts"
import { plainText } from "#domain/PlainText.ts"
import { bodyRefusals, errorBody } from "#http/Errors.ts"
import { RequestErrors } from "#http/RequestErrors.ts"

const AgentId = plainText({ min: 1, max: 200 })

const Registration = Schema.Struct({
  email: Schema.optionalKey(EmailAddress),
  agent_id: Schema.optionalKey(AgentId)
}).check(
  Schema.makeFilter(({ agent_id, email }) => email !== undefined || agent_id !== undefined || "email or agent_id is required")
)

const Registered = Schema.Struct({
  api_key: Schema.String.annotate({ description: "Shown this once: keep it" }),
  tier: Schema.Literal("free"),
  quota: Schema.Int.annotate({ description: "Validations per month" })
}).annotate({ identifier: "Registered" })

export class RegistrationApi extends HttpApiGroup.make("registration")
  .add(
    HttpApiEndpoint.post("register", "/v1/register", {
      payload: Registration,
      success: Registered.pipe(HttpApiSchema.status(201)),
      error: [
        errorBody(400, ["VALIDATION_ERROR", "DISPOSABLE_EMAIL"]),
        ...bodyRefusals,
        errorBody(409, ["CONFLICT"]),
        errorBody(429, ["RATE_LIMIT_EXCEEDED"]),
        errorBody(503, ["SERVICE_UNAVAILABLE"])
      ]
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Get an API key at once",
        description: "For agents and first tries: no password, no waiting for a mail."
      })
    )
  )
  .middleware(RequestErrors) {}
