/** POST /v1/register (rule 43). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { EmailAddress } from "#domain/email/EmailAddress.ts"
import { plainText } from "#domain/kernel/PlainText.ts"
import { bodyRefusals, errorBody } from "#http/pipeline/Problem.ts"
import { DecodeErrors } from "#http/pipeline/DecodeErrors.ts"

const AgentId = plainText({ min: 1, max: 200 }).annotate({
  description: "Your name, if you are a program",
  examples: ["invoice-agent/2.1"]
})

const Contacts = Schema.Struct({
  email: Schema.optionalKey(
    EmailAddress.annotate({ format: "email", description: "An address that is not disposable", examples: ["ada@example.com"] })
  ),
  agent_id: Schema.optionalKey(AgentId)
})

/** Bodies have a title for the OpenAPI document. An identifier would appear in error messages ("Expected Registration"). */
const Registration = Contacts.check(
  Schema.makeFilter(
    ({ agent_id, email }: typeof Contacts.Type) =>
      email !== undefined || agent_id !== undefined || "email or agent_id is required"
  ).annotate({ toJsonSchema: () => ({ minProperties: 1 }) })
).annotate({ title: "Registration", description: "At least one of `email` and `agent_id`" })

const Registered = Schema.Struct({
  api_key: Schema.String.annotate({
    description: "Shown only once: store it",
    examples: ["svc_live_HUXJ4gRVYKsVcUEZAGNctMef0n5cRtVF0Hv5ww"]
  }),
  tier: Schema.Literal("free").annotate({ description: "The plan" }),
  quota: Schema.Int.annotate({ description: "Validations per month", examples: [100] })
}).annotate({ identifier: "Registered", description: "A key of the free plan" })

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
        identifier: "registerAgent",
        summary: "Get an API key at once",
        description: "For agents and first tries: no password and no mail."
      })
    )
  )
  .middleware(DecodeErrors)
  .annotateMerge(OpenApi.annotations({ title: "Registration", description: "An API key without a password." })) {}
