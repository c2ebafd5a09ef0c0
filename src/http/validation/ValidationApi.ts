/** Declares GET /v1/validate/{vat_id} (rules 7-20). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { companyData } from "#domain/receipts/ConfirmationRules.ts"
import { plainText } from "#domain/text/PlainText.ts"
import { MatchLetter, MatchWord } from "#domain/receipts/Receipt.ts"
import { KeyAllowed } from "#http/pipeline/Authentication.ts"
import { errorBody } from "#http/pipeline/Errors.ts"
import { fromDigits, numberParameters } from "#http/openapi/NumberParameters.ts"
import * as IdempotencyKeyHeader from "#http/wire/IdempotencyKeyHeader.ts"
import { Timestamp } from "#http/wire/Timestamp.ts"

/** An optional field of company data. Real company data is shorter than 300 characters. */
const companyField = (description: string, example: string) =>
  Schema.optionalKey(plainText({ min: 0, max: 300 }).annotate({ description, examples: [example] }))

const nullable = <S extends Schema.Top>(schema: S, description: string) => Schema.NullOr(schema).annotate({ description })

const receiptFields = {
  receipt_id: Schema.String,
  issued_at: Timestamp,
  source: Schema.String.annotate({ description: "Issuer of the receipt: the service itself, not the tax authority" })
}

/** The results of comparing company data with the register, in words (rule 28). */
const ConfirmationWords = Schema.Struct({
  name_match: MatchWord,
  street_match: MatchWord,
  zip_match: MatchWord,
  city_match: MatchWord,
  ...receiptFields
}).annotate({ identifier: "QualifiedConfirmation" })

/** The results of comparing company data with the register, in letters (rule 28): A match, B no match, C not checked, D not provided by the source. */
const ConfirmationLetters = Schema.Struct({
  name_match: MatchLetter,
  street_match: MatchLetter,
  zip_match: MatchLetter,
  city_match: MatchLetter,
  confirmation_number: nullable(Schema.String, "Number that the tax authority gave to its check"),
  ...receiptFields
}).annotate({ identifier: "QualifiedConfirmationLetters" })

export const ValidationResult = Schema.Struct({
  valid: Schema.Boolean.annotate({ description: "true: the VAT ID is registered and active. An outage is a 503, never false" }),
  vat_id: Schema.String.annotate({
    description: "Normalized VAT ID with the prefix of VIES (Greece: EL)",
    examples: ["DE123456789"]
  }),
  country_code: Schema.String.annotate({ description: "ISO 3166-1 alpha-2 code of the country (Greece: GR)", examples: ["DE"] }),
  vat_number: Schema.String.annotate({ description: "The number without the prefix", examples: ["123456789"] }),
  company_name: nullable(Schema.String, "Registered name, if the source discloses it"),
  company_address: nullable(Schema.String, "Registered address, if the source discloses it"),
  source: Schema.Literals(["vies", "bzst", "cache"]).annotate({ description: "Where the answer comes from" }),
  source_timestamp: nullable(Timestamp, "When the source gave this answer"),
  cache: Schema.Boolean.annotate({ description: "The answer is from the cache; `source_timestamp` shows its age" }),
  stale: Schema.optionalKey(
    Schema.Literal(true).annotate({
      description:
        "The answer is older than a fresh one, because no source answers; absent otherwise. The header `Warning: 110` says the same"
    })
  ),
  qualified_confirmation: nullable(
    Schema.Union([ConfirmationWords, ConfirmationLetters]),
    "The comparison with the register; null if you sent no company data"
  ),
  consultation_number: nullable(
    Schema.String,
    "Number that VIES gives to a lookup with a requester (`requester_vat_id`, else the operator's), as a proof; null in a cached answer"
  ),
  request_id: Schema.String.annotate({ description: "Equal to the response header X-Request-Id" }),
  requested_at: Timestamp
}).annotate({ identifier: "ValidationResult", description: "The verdict" })

/** The path of the endpoint, in the syntax of the router. */
export const validatePath = "/v1/validate/:vat_id"

/** The company data that a qualified confirmation compares with the register. */
export const company = {
  name: companyField("Name to compare. Without it the BZSt compares nothing", "Muster GmbH"),
  street: companyField("Street to compare, if name and city are sent too", "Musterstraße 1"),
  zip: companyField("Postal code to compare, if name and city are sent too", "10115"),
  city: companyField("City to compare. Without it the BZSt compares nothing", "Berlin")
}

export const requesterVatId = Schema.optionalKey(
  Schema.String.annotate({
    description:
      "Your own German VAT ID; without company data also one of another member state, if the operator allows it. Required with company data. Without company data the answer of VIES gets a `consultation_number`",
    examples: ["DE811115368"]
  })
)

export const vatIdInput = Schema.String.annotate({
  description: "The VAT ID, with or without its country prefix (digits alone are German). Spaces, hyphens and dots are removed",
  examples: ["DE123456789"]
})

export const MaxAge = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2_592_000 })).annotate({
  description: "Maximum age in seconds of a cached or stale answer. An older one is not served; 0 is the same as `force_live`"
})

export const companyFields = {
  company_name: company.name,
  company_street: company.street,
  company_city: company.city,
  company_zip: company.zip
}

/** Returns the company data of a query or of an item of a batch; null without any. */
export const companyOf = (sent: { readonly [K in keyof typeof companyFields]?: string }) =>
  companyData({ name: sent.company_name, street: sent.company_street, zip: sent.company_zip, city: sent.company_city })

export const ValidationQuery = Schema.Struct({
  requester_vat_id: requesterVatId,
  ...companyFields,
  reference: Schema.optionalKey(
    plainText({ min: 0, max: 100 }).annotate({
      description:
        "Your own invoice or order number. It is stored with the validation and shown in the receipt, to auditors and in exports, until its personal data is erased",
      examples: ["INV-2026-0042"]
    })
  ),
  match_format: Schema.optionalKey(
    Schema.Literals(["words", "letters"]).annotate({
      description: "Format of the comparison: words (default) or the BZSt's letters"
    })
  ),
  force_live: Schema.optionalKey(
    Schema.Literals(["true", "false", "1", "0"]).annotate({ description: "true or 1: ask the source and ignore the cache" })
  ),
  max_age: Schema.optionalKey(fromDigits(MaxAge))
})

const validate = HttpApiEndpoint.get("validate", validatePath, {
  params: { vat_id: vatIdInput },
  query: ValidationQuery,
  headers: { "idempotency-key": IdempotencyKeyHeader.header },
  success: HttpApiSchema.WithHeaders(ValidationResult, { warning: Schema.optionalKey(Schema.String) }),
  error: [
    errorBody("INVALID_VAT_ID", "INVALID_REQUESTER_VAT_ID", "QUALIFIED_CONFIRMATION_UNSUPPORTED", "VALIDATION_ERROR"),
    errorBody("UNAUTHORIZED"),
    errorBody("PAYMENT_REQUIRED"),
    errorBody("IDEMPOTENCY_IN_PROGRESS"),
    errorBody("QUALIFIED_CONFIRMATION_REFUSED", "IDEMPOTENCY_KEY_REUSED"),
    errorBody("RATE_LIMIT_EXCEEDED"),
    errorBody("SOURCE_UNAVAILABLE", "SERVICE_UNAVAILABLE")
  ]
}).annotateMerge(
  OpenApi.annotations({
    identifier: "validateVatId",
    summary: "Validate a VAT ID",
    description:
      "Answers from a fresh cache entry, else from VIES, else (German VAT IDs, callers with a key) from the BZSt. Ten validations need no key. " +
      "With company data the request is a qualified confirmation (§ 18e UStG) by the BZSt, for German VAT IDs and paid plans; `requester_vat_id` is required. " +
      "The BZSt compares only if both `company_name` and `company_city` are sent. Otherwise every sent field is `not_provided`, the header `Warning` says so, and the answer is charged. " +
      "`Idempotency-Key` needs an API key. With it the validation also gets an id, and `GET /v1/validations` lists it.",
    transform: numberParameters({ max_age: MaxAge }),
    // Declares the API key as optional. The library has no other way to declare an optional security scheme.
    override: { security: [{}, { apiKey: [] }] }
  })
)

export class ValidationApi extends HttpApiGroup.make("validation")
  .add(validate)
  .middleware(KeyAllowed)
  .annotateMerge(
    OpenApi.annotations({ title: "Validation", description: "Validate VAT IDs and get qualified confirmations." })
  ) {}
