/** Declares POST /v1/register (rules 43, 87). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { EmailAddress } from "#domain/accounts/email/EmailAddress.ts"
import { plainText } from "#domain/text/PlainText.ts"
import { bodyRefusals, errorBody } from "#http/pipeline/Errors.ts"
import { DecodeErrors } from "#http/pipeline/DecodeErrors.ts"

const AgentId = plainText({ min: 1, max: 200 }).annotate({
  description: "Name of your program or agent",
  examples: ["invoice-agent/2.1"]
})

const Contacts = Schema.Struct({
  email: Schema.optionalKey(
    EmailAddress.annotate({ format: "email", description: "An address that is not disposable", examples: ["ada@example.com"] })
  ),
  agent_id: Schema.optionalKey(AgentId)
})

/**
 * The body of a registration. The schema has a `title` for the OpenAPI document. An `identifier` would also appear in error messages
 * ("Expected Registration").
 */
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

/** Minimum length of an Idempotency-Key. It must be as hard to guess as an API key, because a repeated registration returns the API key again. */
export const idempotencyKeyLength = 32
/** Minimum number of different characters of an Idempotency-Key. A random UUID has fewer about once in 10^8. */
export const idempotencyKeyVariety = 8

const idempotencyHeader = Schema.optionalKey(
  Schema.String.annotate({
    description: `Makes the registration safe to repeat. Send a random value of at least ${idempotencyKeyLength} printable ASCII characters, at least ${idempotencyKeyVariety} of them different, such as a UUID. A repetition with the same value and body, from the same client address within 24 hours, gets the same API key again. Keep the value as secret as the API key`,
    examples: ["8e03978e-40d5-43dd-bc93-6894a57f9324"]
  })
)

export class RegistrationApi extends HttpApiGroup.make("registration")
  .add(
    HttpApiEndpoint.post("register", "/v1/register", {
      payload: Registration,
      headers: { "idempotency-key": idempotencyHeader },
      success: Registered.pipe(HttpApiSchema.status(201)),
      error: [
        errorBody("VALIDATION_ERROR", "DISPOSABLE_EMAIL"),
        ...bodyRefusals,
        errorBody("CONFLICT", "IDEMPOTENCY_IN_PROGRESS"),
        errorBody("IDEMPOTENCY_KEY_REUSED"),
        errorBody("RATE_LIMIT_EXCEEDED"),
        errorBody("SERVICE_UNAVAILABLE")
      ]
    }).annotateMerge(
      OpenApi.annotations({
        identifier: "registerAgent",
        summary: "Get an API key at once",
        description:
          "Creates an account on the free plan, and returns its API key. For agents and first tests: needs no password and sends no mail."
      })
    )
  )
  .middleware(DecodeErrors)
  .annotateMerge(OpenApi.annotations({ title: "Registration", description: "An API key without a password." })) {}
