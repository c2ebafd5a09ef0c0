/** GET /v1/validate/{vat_id} (INTERFACE 2.1 and 4.3). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { plainText } from "#domain/PlainText.ts"
import { MatchLetter, MatchWord } from "#domain/Receipt.ts"
import { Admission } from "#http/Authentication.ts"
import { errorBody } from "#http/Errors.ts"
import { RequestErrors } from "#http/RequestErrors.ts"

/** Longer company data is no company's. */
const companyField = (description: string) => Schema.optionalKey(plainText({ min: 0, max: 300 }).annotate({ description }))

const nullable = <S extends Schema.Top>(schema: S, description: string) => Schema.NullOr(schema).annotate({ description })

const receiptFields = {
  receipt_id: Schema.String,
  issued_at: Schema.DateTimeUtcFromString,
  source: Schema.String.annotate({ description: "The service itself, not the tax authority" })
}

/** Shape B of INTERFACE 2.2. */
const ConfirmationWords = Schema.Struct({
  name_match: MatchWord,
  street_match: MatchWord,
  zip_match: MatchWord,
  city_match: MatchWord,
  ...receiptFields
}).annotate({ identifier: "QualifiedConfirmation" })

/** Shape A of INTERFACE 2.2: A match, B no match, C not checked, D not provided by the source. */
const ConfirmationLetters = Schema.Struct({
  name_match: MatchLetter,
  street_match: MatchLetter,
  zip_match: MatchLetter,
  city_match: MatchLetter,
  confirmation_number: nullable(Schema.String, "The tax authority's own number of the check"),
  ...receiptFields
}).annotate({ identifier: "QualifiedConfirmationLetters" })

export const ValidationResult = Schema.Struct({
  valid: Schema.Boolean.annotate({ description: "The VAT ID is registered and active. An outage is never false: it is a 503" }),
  vat_id: Schema.String.annotate({ description: "Normalised VAT ID, with the prefix VIES uses (Greece: EL)" }),
  country_code: Schema.String.annotate({ description: "ISO 3166-1 alpha-2 (Greece: GR)" }),
  vat_number: Schema.String.annotate({ description: "The number without the prefix" }),
  company_name: nullable(Schema.String, "Registered name, where the source discloses it"),
  company_address: nullable(Schema.String, "Registered address, where the source discloses it"),
  source: Schema.Literals(["vies", "bzst", "cache"]),
  source_timestamp: nullable(Schema.DateTimeUtcFromString, "When the source gave this answer"),
  cache: Schema.Boolean,
  qualified_confirmation: nullable(Schema.Union([ConfirmationWords, ConfirmationLetters]), "Where company data was supplied"),
  consultation_number: nullable(
    Schema.String,
    "VIES' proof of this request, given to a requester_vat_id; null in a cached answer"
  ),
  request_id: Schema.String,
  requested_at: Schema.DateTimeUtcFromString
}).annotate({ identifier: "ValidationResult" })

const validate = HttpApiEndpoint.get("validate", "/v1/validate/:vat_id", {
  params: {
    vat_id: Schema.String.annotate({
      description: "With or without prefix (bare digits are German); spaces, hyphens and dots are stripped"
    })
  },
  query: {
    requester_vat_id: Schema.optionalKey(Schema.String.annotate({ description: "Your own German VAT ID" })),
    company_name: companyField("Name to match"),
    company_street: companyField("Street to match"),
    company_city: companyField("City to match"),
    company_zip: companyField("Postal code to match"),
    match_format: Schema.optionalKey(
      Schema.Literals(["words", "letters"]).annotate({
        description: "How matches are told: words (default) or the BZSt's letters"
      })
    ),
    force_live: Schema.optionalKey(
      Schema.Literals(["true", "false", "1", "0"]).annotate({ description: "true or 1: ask the source, whatever is cached" })
    )
  },
  success: HttpApiSchema.WithHeaders(ValidationResult, { warning: Schema.optionalKey(Schema.String) }),
  error: [
    errorBody(400, ["INVALID_VAT_ID", "INVALID_REQUESTER_VAT_ID", "QUALIFIED_CONFIRMATION_UNSUPPORTED", "VALIDATION_ERROR"]),
    errorBody(401, ["UNAUTHORIZED"]),
    errorBody(402, ["PAYMENT_REQUIRED"]),
    errorBody(422, ["QUALIFIED_CONFIRMATION_REFUSED"]),
    errorBody(429, ["RATE_LIMIT_EXCEEDED"]),
    errorBody(503, ["SOURCE_UNAVAILABLE", "SERVICE_UNAVAILABLE"])
  ]
}).annotateMerge(
  OpenApi.annotations({
    summary: "Validate a VAT ID",
    description:
      "Answers from the cache if it is fresh, else from VIES, else (German VAT IDs, callers with a key) from the BZSt. Works without a key ten times."
  })
)

/** Last added runs first: who and how often, and only then what. */
export class ValidationApi extends HttpApiGroup.make("validation")
  .add(validate)
  .middleware(RequestErrors)
  .middleware(Admission) {}
