/** POST /v1/validations and what belongs to it: validations that may be answered later (rules 64-70). */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { plainText } from "#domain/kernel/PlainText.ts"
import { ValidationState } from "#domain/validation/PendingValidation.ts"
import { KeyRequired } from "#http/pipeline/Authentication.ts"
import { DecodeErrors } from "#http/pipeline/DecodeErrors.ts"
import { bodyRefusals, errorBody } from "#http/pipeline/Errors.ts"
import { fromDigits, numberParameters } from "#http/openapi/NumberParameters.ts"
import { ValidationResult } from "#http/validation/ValidationApi.ts"
import * as IdempotencyKeyHeader from "#http/wire/IdempotencyKeyHeader.ts"
import { Timestamp } from "#http/wire/Timestamp.ts"

/** Seconds that a client may wait in one request. */
export const maxWaitSeconds = 30

const companyField = (description: string, example: string) =>
  Schema.optionalKey(plainText({ min: 0, max: 300 }).annotate({ description, examples: [example] }))

const reference = plainText({ min: 0, max: 100 }).annotate({
  description: "Your own invoice or order number. It is stored with the validation, erasable, and a filter of the list",
  examples: ["INV-2026-0042"]
})

export const Submission = Schema.Struct({
  vat_id: Schema.String.annotate({
    description: "With or without prefix (bare digits are German); spaces, hyphens and dots are stripped",
    examples: ["DE123456789"]
  }),
  requester_vat_id: Schema.optionalKey(
    Schema.String.annotate({
      description: "Your own German VAT ID. Needed with company data; without, VIES gives it a consultation number",
      examples: ["DE811115368"]
    })
  ),
  company: Schema.optionalKey(
    Schema.Struct({
      name: companyField("Name to match. Nothing is compared without it", "Muster GmbH"),
      street: companyField("Street to match, if name and city are sent too", "Musterstraße 1"),
      zip: companyField("Postal code to match, if name and city are sent too", "10115"),
      city: companyField("City to match. Nothing is compared without it", "Berlin")
    }).annotate({ description: "Asks for a qualified confirmation, by the rules of GET /v1/validate/{vat_id}" })
  ),
  force_live: Schema.optionalKey(Schema.Boolean.annotate({ description: "true: ask the source and ignore the cache" })),
  reference: Schema.optionalKey(reference),
  expires_in: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 60, maximum: 1_209_600 })).annotate({
      description: "Seconds that the validation stays open. Default: 72 hours; maximum: 14 days",
      examples: [86_400]
    })
  )
}).annotate({ title: "ValidationSubmission" })

const validationId = Schema.String.annotate({
  description: "The validation's id",
  examples: ["01a20419-04ae-76a0-8ca8-7e1e53bc6219"]
})

const open = {
  validation_id: validationId,
  vat_id: Schema.String.annotate({ examples: ["DE123456789"] }),
  accepted_at: Timestamp,
  expires_at: Timestamp.annotate({ description: "Time at which it ends without an answer" }),
  attempts: Schema.Int.annotate({ description: "Number of attempts, which are not charged" }),
  last_failure: Schema.NullOr(
    Schema.Struct({
      source: Schema.NullOr(Schema.String.annotate({ examples: ["vies"] })),
      code: Schema.String.annotate({
        description:
          "The source's own code. QUOTA: the monthly quota is used up, and the validation continues when it is renewed",
        examples: ["MS_UNAVAILABLE"]
      })
    })
  ).annotate({ description: "Failure of the last attempt; null before the first" })
}

const PendingValidation = Schema.Struct({
  ...open,
  status: Schema.Literal("pending"),
  next_attempt_at: Timestamp
}).annotate({
  identifier: "PendingValidation",
  description: "It waits for an answer. There is no verdict on the VAT ID, so `valid` is absent"
})

const FinalValidation = Schema.Struct({
  validation_id: validationId,
  status: Schema.Literal("final"),
  ...ValidationResult.fields
}).annotate({ identifier: "FinalValidation", description: "The verdict, which was charged once" })

const EndedValidation = Schema.Struct({
  ...open,
  status: Schema.Literals(["expired", "cancelled"]),
  reason: Schema.NullOr(Schema.String).annotate({
    description:
      "Reason for the cancellation: requested, key_revoked, not_allowed (the plan changed), erased, or refused with the BZSt's code; null if it expired",
    examples: ["requested"]
  })
}).annotate({ identifier: "EndedValidation", description: "It ended without an answer or a charge" })

const AnyValidation = Schema.Union([PendingValidation, FinalValidation, EndedValidation])

const ValidationSummary = Schema.Struct({
  ...open,
  status: ValidationState,
  next_attempt_at: Schema.NullOr(Timestamp).annotate({ description: "null if it is not pending" })
}).annotate({ identifier: "ValidationSummary" })

const ValidationList = Schema.Struct({
  data: Schema.Array(ValidationSummary),
  next_cursor: Schema.NullOr(Schema.String).annotate({ description: "Opaque; null on the last page" })
}).annotate({ identifier: "ValidationList", description: "A page of validations" })

const Wait = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: maxWaitSeconds })).annotate({
  description: "Seconds to wait for the answer (long poll)",
  default: 0
})
const Limit = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 })).annotate({
  description: "Validations of a page",
  default: 20
})

export const listQuery = {
  status: Schema.optionalKey(ValidationState.annotate({ description: "Only validations in this state" })),
  reference: Schema.optionalKey(Schema.String.annotate({ description: "Only validations with exactly this reference" })),
  vat_id: Schema.optionalKey(
    Schema.String.annotate({ description: "Only validations of this VAT ID", examples: ["DE123456789"] })
  ),
  limit: Schema.optionalKey(fromDigits(Limit)),
  cursor: Schema.optionalKey(Schema.String.annotate({ description: "next_cursor of the previous page" }))
}

const errors = [errorBody(401, ["UNAUTHORIZED"]), errorBody(503, ["SERVICE_UNAVAILABLE"])]
const params = { validation_id: validationId }

export class PendingValidationsApi extends HttpApiGroup.make("pendingValidations")
  .add(
    HttpApiEndpoint.post("submit", "/v1/validations", {
      payload: Submission,
      headers: {
        prefer: Schema.optionalKey(
          Schema.String.annotate({
            description:
              "RFC 7240. `respond-async`: a validation that cannot be answered now is accepted (202) instead of refused (503). `wait=n`: wait up to n seconds for the answer, at most 30",
            examples: ["respond-async, wait=10"]
          })
        ),
        "idempotency-key": IdempotencyKeyHeader.header
      },
      success: [FinalValidation, PendingValidation.pipe(HttpApiSchema.status(202))],
      error: [
        errorBody(400, ["INVALID_VAT_ID", "INVALID_REQUESTER_VAT_ID", "QUALIFIED_CONFIRMATION_UNSUPPORTED", "VALIDATION_ERROR"]),
        errorBody(402, ["PAYMENT_REQUIRED"]),
        errorBody(409, ["IDEMPOTENCY_IN_PROGRESS"]),
        ...bodyRefusals,
        errorBody(422, ["QUALIFIED_CONFIRMATION_REFUSED", "IDEMPOTENCY_KEY_REUSED"]),
        errorBody(429, ["RATE_LIMIT_EXCEEDED"]),
        errorBody(401, ["UNAUTHORIZED"]),
        errorBody(503, ["SOURCE_UNAVAILABLE", "SERVICE_UNAVAILABLE"])
      ]
    })
      // A supplied field is never ignored silently (rule 11).
      .annotate(HttpApi.PayloadParseOptions, { errors: "all", onExcessProperty: "error" })
      .annotateMerge(
        OpenApi.annotations({
          identifier: "submitValidation",
          summary: "Validate a VAT ID now or later",
          description:
            "As GET /v1/validate/{vat_id}, with an id for the validation. With `Prefer: respond-async` an outage of the sources is no refusal: the validation is accepted, " +
            "tried again until it is answered or expires, and read at `Location`. It counts in the minute when it is accepted, and is charged one when it is answered. " +
            "The sources are asked at once, when the register answers again, else after 30 s, 2 min, 10 min, then every 30 min."
        })
      )
  )
  .add(
    HttpApiEndpoint.get("get", "/v1/validations/:validation_id", {
      params,
      query: { wait: Schema.optionalKey(fromDigits(Wait)) },
      success: [AnyValidation],
      error: [errorBody(400, ["VALIDATION_ERROR"]), errorBody(404, ["NOT_FOUND"]), ...errors]
    }).annotateMerge(
      OpenApi.annotations({
        identifier: "getValidation",
        summary: "A validation and its answer",
        description:
          "Readable by the API key that submitted it; others get 404. `wait` holds the request until it is no longer pending.",
        transform: numberParameters({ wait: Wait })
      })
    )
  )
  .add(
    HttpApiEndpoint.get("list", "/v1/validations", {
      query: listQuery,
      success: ValidationList,
      error: [errorBody(400, ["VALIDATION_ERROR", "INVALID_VAT_ID"]), ...errors]
    }).annotateMerge(
      OpenApi.annotations({
        identifier: "listValidations",
        summary: "Your submitted validations",
        description: "Validations of the API key, newest first.",
        transform: numberParameters({ limit: Limit })
      })
    )
  )
  .add(
    HttpApiEndpoint.delete("cancel", "/v1/validations/:validation_id", {
      params,
      success: [AnyValidation],
      error: [errorBody(404, ["NOT_FOUND"]), ...errors]
    }).annotateMerge(
      OpenApi.annotations({
        identifier: "cancelValidation",
        summary: "Cancel a pending validation",
        description: "Charges nothing. Does not change a validation that is no longer pending; the response shows its state."
      })
    )
  )
  .middleware(DecodeErrors)
  .middleware(KeyRequired)
  .annotateMerge(OpenApi.annotations({ title: "Pending validations", description: "Validations that may be answered later." })) {}
