/** Declares the endpoints under /v1/validations: validations that may be answered later (rules 64-70). */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { plainText } from "#domain/text/PlainText.ts"
import { ValidationState } from "#domain/validation/ValidationTask.ts"
import { KeyRequired } from "#http/pipeline/Authentication.ts"
import { DecodeErrors } from "#http/pipeline/DecodeErrors.ts"
import { authenticationErrors, bodyRefusals, errorBody } from "#http/pipeline/Errors.ts"
import { fromDigits, numberParameters } from "#http/openapi/NumberParameters.ts"
import { vatIdInput, company, MaxAge, requesterVatId, ValidationResult } from "#http/validation/ValidationApi.ts"
import * as IdempotencyKeyHeader from "#http/wire/IdempotencyKeyHeader.ts"
import { Timestamp } from "#http/wire/Timestamp.ts"

/** Maximum time in seconds that a request waits for an answer. */
export const maxWaitSeconds = 30

const reference = plainText({ min: 0, max: 100 }).annotate({
  description:
    "Your own invoice or order number. It is stored with the validation until its personal data is erased, and the list can be filtered by it",
  examples: ["INV-2026-0042"]
})

export const Submission = Schema.Struct({
  vat_id: vatIdInput,
  requester_vat_id: requesterVatId,
  company: Schema.optionalKey(
    Schema.Struct(company).annotate({
      description: "Company data makes the request a qualified confirmation, by the rules of GET /v1/validate/{vat_id}"
    })
  ),
  force_live: Schema.optionalKey(Schema.Boolean.annotate({ description: "true: ask the source and ignore the cache" })),
  max_age: Schema.optionalKey(MaxAge),
  reference: Schema.optionalKey(reference),
  expires_in: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 60, maximum: 1_209_600 })).annotate({
      description: "Seconds after which the validation expires if it has no answer. Default: 72 hours; maximum: 14 days",
      examples: [86_400]
    })
  )
}).annotate({ title: "ValidationSubmission" })

const validationId = Schema.String.annotate({
  description: "Id of the validation",
  examples: ["01a20419-04ae-76a0-8ca8-7e1e53bc6219"]
})

const shownReference = Schema.optionalKey(
  Schema.String.annotate({ description: "Your own number, if you sent one, until the erasure of personal data" })
)

const open = {
  validation_id: validationId,
  vat_id: Schema.String.annotate({ examples: ["DE123456789"] }),
  reference: shownReference,
  accepted_at: Timestamp,
  expires_at: Timestamp.annotate({ description: "Time at which a pending validation expires without an answer" }),
  attempts: Schema.Int.annotate({ description: "Number of attempts to get an answer; attempts are not charged" }),
  last_failure: Schema.NullOr(
    Schema.Struct({
      source: Schema.NullOr(Schema.String.annotate({ examples: ["vies"] })),
      code: Schema.String.annotate({
        description:
          "Error code of the source. QUOTA: the monthly quota is used up, and the validation continues when there is quota again",
        examples: ["MS_UNAVAILABLE"]
      })
    })
  ).annotate({ description: "Failure of the last attempt; null before the first attempt" })
}

const PendingValidation = Schema.Struct({
  ...open,
  status: Schema.Literal("pending"),
  next_attempt_at: Timestamp.annotate({ description: "Earliest time of the next attempt" })
}).annotate({
  identifier: "PendingValidation",
  description: "A validation that waits for an answer. It has no verdict yet, so `valid` is absent"
})

const FinalValidation = Schema.Struct({
  validation_id: validationId,
  status: Schema.Literal("final"),
  reference: shownReference,
  ...ValidationResult.fields
}).annotate({ identifier: "FinalValidation", description: "An answered validation, which was charged once" })

const EndedValidation = Schema.Struct({
  ...open,
  status: Schema.Literals(["expired", "cancelled"]),
  reason: Schema.NullOr(Schema.String).annotate({
    description:
      "Reason for a cancellation: requested, key_revoked, not_allowed (by a new plan), erased (its personal data), or refused with the status code of the BZSt; null if the validation expired",
    examples: ["requested"]
  })
}).annotate({
  identifier: "EndedValidation",
  description: "A validation that expired or was cancelled, without an answer and without a charge"
})

const AnyValidation = Schema.Union([PendingValidation, FinalValidation, EndedValidation])

const ValidationSummary = Schema.Struct({
  ...open,
  status: ValidationState,
  next_attempt_at: Schema.NullOr(Timestamp).annotate({
    description: "Earliest time of the next attempt; null if the validation is not pending"
  })
}).annotate({ identifier: "ValidationSummary" })

const ValidationList = Schema.Struct({
  data: Schema.Array(ValidationSummary),
  next_cursor: Schema.NullOr(Schema.String).annotate({ description: "Cursor of the next page, opaque; null on the last page" })
}).annotate({ identifier: "ValidationList", description: "A page of validations" })

const Wait = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: maxWaitSeconds })).annotate({
  description: "Seconds to wait for the answer (long poll)",
  default: 0
})
const Limit = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 })).annotate({
  description: "Validations per page",
  default: 20
})

const listQuery = {
  status: Schema.optionalKey(ValidationState.annotate({ description: "Only validations in this state" })),
  reference: Schema.optionalKey(Schema.String.annotate({ description: "Only validations with exactly this reference" })),
  vat_id: Schema.optionalKey(
    Schema.String.annotate({ description: "Only validations of this VAT ID", examples: ["DE123456789"] })
  ),
  limit: Schema.optionalKey(fromDigits(Limit)),
  cursor: Schema.optionalKey(Schema.String.annotate({ description: "next_cursor of the previous page" }))
}

const params = { validation_id: validationId }

export class PendingValidationsApi extends HttpApiGroup.make("pendingValidations")
  .add(
    HttpApiEndpoint.post("submit", "/v1/validations", {
      payload: Submission,
      headers: {
        prefer: Schema.optionalKey(
          Schema.String.annotate({
            description:
              "RFC 7240. `respond-async`: a validation that cannot be answered now is accepted (202) instead of refused (503). `wait=n`: wait up to n seconds for the answer, from 0 to 30",
            examples: ["respond-async, wait=10"]
          })
        ),
        "idempotency-key": IdempotencyKeyHeader.header
      },
      success: [FinalValidation, PendingValidation.pipe(HttpApiSchema.status(202))],
      error: [
        errorBody("INVALID_VAT_ID", "INVALID_REQUESTER_VAT_ID", "QUALIFIED_CONFIRMATION_UNSUPPORTED", "VALIDATION_ERROR"),
        errorBody("PAYMENT_REQUIRED"),
        errorBody("IDEMPOTENCY_IN_PROGRESS"),
        ...bodyRefusals,
        errorBody("QUALIFIED_CONFIRMATION_REFUSED", "IDEMPOTENCY_KEY_REUSED"),
        errorBody("RATE_LIMIT_EXCEEDED"),
        errorBody("UNAUTHORIZED"),
        errorBody("SOURCE_UNAVAILABLE", "SERVICE_UNAVAILABLE")
      ]
    })
      // An unknown field is an error, because the service would otherwise silently ignore a misspelled field (rule 11).
      .annotate(HttpApi.PayloadParseOptions, { errors: "all", onExcessProperty: "error" })
      .annotateMerge(
        OpenApi.annotations({
          identifier: "submitValidation",
          summary: "Validate a VAT ID now or later",
          description:
            "Validates as GET /v1/validate/{vat_id} does, and gives the validation an id. With `Prefer: respond-async` a validation is also accepted during an outage of the sources, " +
            "and retried until it is answered or expires; `Location` is its path. The request counts in the minute. Only the answer is charged, as one validation. " +
            "The sources are asked at once, and again when the register of the member state recovers, or after 30 s, 2 min, 10 min, then every 30 min."
        })
      )
  )
  .add(
    HttpApiEndpoint.get("get", "/v1/validations/:validation_id", {
      params,
      query: { wait: Schema.optionalKey(fromDigits(Wait)) },
      success: [AnyValidation],
      error: [errorBody("VALIDATION_ERROR"), errorBody("NOT_FOUND"), ...authenticationErrors]
    }).annotateMerge(
      OpenApi.annotations({
        identifier: "getValidation",
        summary: "Get a validation and its answer",
        description:
          "Returns a validation, with its answer if it has one. Only the API key that submitted the validation can read it; others get 404. With `wait` the response waits until the validation is no longer pending.",
        transform: numberParameters({ wait: Wait })
      })
    )
  )
  .add(
    HttpApiEndpoint.get("list", "/v1/validations", {
      query: listQuery,
      success: ValidationList,
      error: [errorBody("VALIDATION_ERROR", "INVALID_VAT_ID"), ...authenticationErrors]
    }).annotateMerge(
      OpenApi.annotations({
        identifier: "listValidations",
        summary: "List your submitted validations",
        description: "Returns the validations of the API key, newest first.",
        transform: numberParameters({ limit: Limit })
      })
    )
  )
  .add(
    HttpApiEndpoint.delete("cancel", "/v1/validations/:validation_id", {
      params,
      success: [AnyValidation],
      error: [errorBody("NOT_FOUND"), errorBody("API_KEY_REPLACED"), ...authenticationErrors]
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
