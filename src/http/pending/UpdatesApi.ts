/** Declares GET /v1/updates (rule 92). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { UpdateType } from "#domain/pending/UpdateReader.ts"
import { fromDigits, numberParameters } from "#http/openapi/NumberParameters.ts"
import { maxWaitSeconds } from "#http/pending/PendingValidationsApi.ts"
import { KeyRequired } from "#http/pipeline/Authentication.ts"
import { DecodeErrors } from "#http/pipeline/DecodeErrors.ts"
import { authenticationErrors, errorBody } from "#http/pipeline/Errors.ts"
import { Timestamp } from "#http/wire/Timestamp.ts"

const update = {
  id: Schema.String.annotate({
    description: "Id of the update, the same for every reader",
    examples: ["msg_7b2f6a31-0d5c-8a7e-9f04-1c6be2a0d977"]
  }),
  timestamp: Timestamp.annotate({ description: "Time at which it happened" })
}
const id = Schema.String.annotate({ examples: ["01a20419-04ae-76a0-8ca8-7e1e53bc6219"] })
const url = Schema.String.annotate({
  description: "URL with all details, such as names and your reference",
  examples: ["https://vat.example.com/v1/validations/01a20419-04ae-76a0-8ca8-7e1e53bc6219"]
})
const validation = { validation_id: id, vat_id: Schema.String.annotate({ examples: ["DE123456789"] }), url }

const ValidationFinal = Schema.Struct({
  ...update,
  type: Schema.Literal("validation.final"),
  data: Schema.Struct({
    ...validation,
    valid: Schema.Boolean,
    source: Schema.String.annotate({ description: "Source of the answer", examples: ["vies"] }),
    source_timestamp: Timestamp.annotate({ description: "Time of the source's answer" }),
    receipt_id: Schema.NullOr(Schema.String.annotate({ description: "Receipt of a qualified confirmation" }))
  })
}).annotate({ identifier: "ValidationFinal", description: "A validation was answered" })

const ValidationEnded = Schema.Struct({
  ...update,
  type: Schema.Literals(["validation.expired", "validation.cancelled"]),
  data: Schema.Struct({
    ...validation,
    reason: Schema.NullOr(Schema.String).annotate({ description: "As in GET /v1/validations/{validation_id}" })
  })
}).annotate({ identifier: "ValidationEnded", description: "A validation ended without an answer" })

const BatchCompleted = Schema.Struct({
  ...update,
  type: Schema.Literal("batch.completed"),
  data: Schema.Struct({
    batch_id: id,
    counts: Schema.Struct({
      final: Schema.Int,
      expired: Schema.Int,
      cancelled: Schema.Int,
      invalid_format: Schema.Int,
      duplicates: Schema.Int
    }),
    url
  })
}).annotate({ identifier: "BatchCompleted", description: "No item of a batch is pending any more" })

const Updates = Schema.Struct({
  data: Schema.Array(Schema.Union([ValidationFinal, ValidationEnded, BatchCompleted])),
  next_cursor: Schema.String.annotate({ description: "`after` of the next call, also on the last page" }),
  has_more: Schema.Boolean.annotate({ description: "true: more updates are there already" })
}).annotate({ identifier: "Updates", description: "A page of updates" })

const Wait = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: maxWaitSeconds })).annotate({
  description: "Seconds to wait for an update, if there is none (long poll)",
  default: 0
})
const Limit = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 })).annotate({
  description: "Updates per page",
  default: 20
})
const anyType = UpdateType.literals.map((type) => type.replace(".", "[.]")).join("|")
const Types = Schema.String.check(
  Schema.isPattern(new RegExp(`^(?:${anyType})(?:,(?:${anyType})){0,9}$`, "u"), {
    message: `Expected one or more of ${UpdateType.literals.join(", ")}, separated by commas`
  })
).annotate({ description: "Only updates of these types, separated by commas", examples: ["validation.final,batch.completed"] })

export class UpdatesApi extends HttpApiGroup.make("updates")
  .add(
    HttpApiEndpoint.get("updates", "/v1/updates", {
      query: {
        after: Schema.optionalKey(
          Schema.String.annotate({
            description:
              "`next_cursor` of the previous call, or `now` for later updates only. Default: from the first update of the key"
          })
        ),
        types: Schema.optionalKey(Types),
        limit: Schema.optionalKey(fromDigits(Limit)),
        wait: Schema.optionalKey(fromDigits(Wait))
      },
      success: Updates,
      error: [errorBody("VALIDATION_ERROR"), ...authenticationErrors]
    }).annotateMerge(
      OpenApi.annotations({
        identifier: "listUpdates",
        summary: "Follow the ends of your validations and batches",
        description:
          "Returns what has ended, oldest first: the validations that the API key submitted, and its batches; the items of batches are not listed. Each update occurs once and in the order of the log, and none is missing. " +
          "With `wait` an empty response waits for the next update. An update has no names, references or custom ids; its `url` has them.",
        transform: numberParameters({ limit: Limit, wait: Wait })
      })
    )
  )
  .middleware(DecodeErrors)
  .middleware(KeyRequired)
  .annotateMerge(OpenApi.annotations({ title: "Updates", description: "What has ended, in order." })) {}
