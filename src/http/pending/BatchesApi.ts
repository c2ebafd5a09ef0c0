/** Declares the endpoints under /v1/batches: many validations in one request (rules 81-85). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { KeyRequired } from "#http/pipeline/Authentication.ts"
import { DecodeErrors } from "#http/pipeline/DecodeErrors.ts"
import { authenticationErrors, bodyRefusals, errorBody } from "#http/pipeline/Errors.ts"
import { fromDigits, numberParameters } from "#http/openapi/NumberParameters.ts"
import { Item } from "#http/pending/BatchItems.ts"
import { MaxAge } from "#http/validation/ValidationApi.ts"
import { maxWaitSeconds } from "#http/pending/PendingValidationsApi.ts"
import * as IdempotencyKeyHeader from "#http/wire/IdempotencyKeyHeader.ts"
import { csv, json, ndjson, text } from "#http/wire/MediaTypes.ts"
import { Timestamp } from "#http/wire/Timestamp.ts"

export const defaultBatches = 20
export const defaultResults = 100

const Batch = Schema.Struct({
  batch_id: Schema.String.annotate({ description: "Id of the batch", examples: ["01a20419-04ae-76a0-8ca8-7e1e53bc6219"] }),
  status: Schema.Literals(["running", "paused", "finished", "cancelling", "cancelled"]).annotate({
    description:
      "paused: the monthly quota is used up; the batch continues when there is quota again. cancelling: some pending items are not cancelled yet"
  }),
  reason: Schema.NullOr(Schema.Literal("QUOTA")).annotate({ description: "Reason of the pause; null if not paused" }),
  resets_at: Schema.NullOr(Timestamp).annotate({ description: "Start of the next quota period; null if not paused" }),
  counts: Schema.Struct({
    total: Schema.Int,
    pending: Schema.Int,
    final: Schema.Int.annotate({ description: "Answered items; each is charged as one validation" }),
    invalid_format: Schema.Int.annotate({
      description: "Items that are no VAT ID: no source was called and nothing was charged"
    }),
    duplicates: Schema.Int.annotate({
      description: "Items that repeat the VAT ID of an earlier item: they have its result and are not charged"
    }),
    expired: Schema.Int,
    cancelled: Schema.Int
  }),
  accepted_at: Timestamp,
  expires_at: Timestamp.annotate({ description: "Time at which pending items expire without an answer" }),
  estimated_end: Schema.NullOr(Timestamp).annotate({
    description:
      "Estimated end of the batch, from its own progress; null in its first seconds, without progress, and if no item is pending"
  })
}).annotate({ identifier: "Batch" })

const BatchResult = Schema.Struct({
  custom_id: Schema.NullOr(Schema.String).annotate({
    description: "Your id of the item; null after the erasure of personal data"
  }),
  vat_id: Schema.NullOr(Schema.String).annotate({ description: "Normalized VAT ID; with `invalid_format` the text as sent" }),
  reference: Schema.optionalKey(
    Schema.String.annotate({ description: "Your own number, if you sent one, until the erasure of personal data" })
  ),
  status: Schema.Literals(["pending", "final", "invalid_format", "expired", "cancelled"]),
  valid: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "true: the VAT ID is registered and active. Absent unless the status is final" })
  ),
  company_name: Schema.optionalKey(Schema.NullOr(Schema.String)),
  company_address: Schema.optionalKey(Schema.NullOr(Schema.String)),
  source: Schema.optionalKey(Schema.Literals(["vies", "bzst", "cache"])),
  source_timestamp: Schema.optionalKey(Timestamp),
  consultation_number: Schema.optionalKey(
    Schema.NullOr(Schema.String).annotate({ description: "As in GET /v1/validate/{vat_id}. Absent without an answer" })
  ),
  receipt_id: Schema.optionalKey(
    Schema.String.annotate({ description: "The receipt of the item's qualified confirmation; absent without one" })
  ),
  last_failure: Schema.optionalKey(
    Schema.NullOr(Schema.Struct({ source: Schema.NullOr(Schema.String), code: Schema.String })).annotate({
      description: "Failure of the last attempt; null before the first attempt. Absent unless the status is pending"
    })
  )
}).annotate({ identifier: "BatchResult" })
export type BatchResultBody = typeof BatchResult.Encoded

const NextCursor = Schema.NullOr(Schema.String).annotate({
  description: "Cursor of the next page, opaque; null on the last page"
})
const BatchList = Schema.Struct({ data: Schema.Array(Batch), next_cursor: NextCursor }).annotate({ identifier: "BatchList" })
const BatchResults = Schema.Struct({ data: Schema.Array(BatchResult), next_cursor: NextCursor }).annotate({
  identifier: "BatchResults",
  description: "Results in the order of the items"
})

const Wait = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: maxWaitSeconds })).annotate({
  description: "Seconds to wait for the end of the batch (long poll)",
  default: 0
})
const Limit = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 20 })).annotate({
  description: "Maximum number of batches per page",
  default: defaultBatches
})
const ResultLimit = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 500 })).annotate({
  description: "Maximum number of results per page; NDJSON and CSV have no pages",
  default: defaultResults
})
const cursor = Schema.optionalKey(Schema.String.annotate({ description: "next_cursor of the previous page" }))

const params = { batch_id: Schema.String.annotate({ description: "Id of the batch" }) }
const errors = [errorBody("NOT_FOUND"), ...authenticationErrors]

const submit = HttpApiEndpoint.post("submit", "/v1/batches", {
  payload: [
    Schema.Struct({ items: Schema.Array(Item) }).annotate({ title: "BatchSubmission" }),
    text(ndjson, "One item per line"),
    text(
      csv,
      "CSV in UTF-8 (RFC 4180), separated by commas or semicolons. The first row names the columns; custom_id and vat_id are required. Columns that no item has are returned with the CSV results"
    )
  ],
  query: { max_age: Schema.optionalKey(fromDigits(MaxAge)) },
  headers: {
    prefer: Schema.optionalKey(
      Schema.String.annotate({
        description: "`wait=n`: wait up to n seconds for the end of the batch, from 0 to 30",
        examples: ["wait=10"]
      })
    ),
    "idempotency-key": IdempotencyKeyHeader.header
  },
  success: Batch.pipe(HttpApiSchema.status(202)),
  error: [
    errorBody("INVALID_REQUESTER_VAT_ID", "QUALIFIED_CONFIRMATION_UNSUPPORTED", "VALIDATION_ERROR"),
    errorBody("PAYMENT_REQUIRED"),
    errorBody("UNAUTHORIZED"),
    ...bodyRefusals,
    errorBody("IDEMPOTENCY_IN_PROGRESS"),
    errorBody("IDEMPOTENCY_KEY_REUSED"),
    errorBody("RATE_LIMIT_EXCEEDED"),
    errorBody("SERVICE_UNAVAILABLE")
  ]
}).annotateMerge(
  OpenApi.annotations({
    identifier: "submitBatch",
    summary: "Validate many VAT IDs",
    description:
      "Accepts 1 to 50,000 items, at most 20 MiB, and 2 KiB per item. The batch is accepted or rejected as a whole; an error names the line and the problem. Each `custom_id` occurs once. A malformed VAT ID " +
      "does not reject the batch: its item gets the result `invalid_format`. A VAT ID that occurs several times is validated and charged once. The batch counts as one " +
      "request in the minute; each answered item is charged as one validation. Items stay pending for up to 35 days, so a batch continues after an outage or with a new quota. With `max_age` no item gets an older cached or stale answer. " +
      "An item with company data is a qualified confirmation by the rules of GET /v1/validate/{vat_id}. The BZSt gets one at a time for each requester, and none between 23:00 and 05:00 German time.",
    transform: numberParameters({ max_age: MaxAge })
  })
)

const get = HttpApiEndpoint.get("get", "/v1/batches/:batch_id", {
  params,
  query: { wait: Schema.optionalKey(fromDigits(Wait)) },
  success: Batch,
  error: [errorBody("VALIDATION_ERROR"), ...errors]
}).annotateMerge(
  OpenApi.annotations({
    identifier: "getBatch",
    summary: "Get a batch and its progress",
    description:
      "Returns the state and the counts of a batch. Only the API key that submitted the batch can read it; others get 404.",
    transform: numberParameters({ wait: Wait })
  })
)

const list = HttpApiEndpoint.get("list", "/v1/batches", {
  query: { limit: Schema.optionalKey(fromDigits(Limit)), cursor },
  success: BatchList,
  error: [errorBody("VALIDATION_ERROR"), ...authenticationErrors]
}).annotateMerge(
  OpenApi.annotations({
    identifier: "listBatches",
    summary: "List batches",
    description: "Returns the batches of the API key, newest first.",
    transform: numberParameters({ limit: Limit })
  })
)

const results = HttpApiEndpoint.get("results", "/v1/batches/:batch_id/results", {
  params,
  query: { limit: Schema.optionalKey(fromDigits(ResultLimit)), cursor },
  headers: { accept: Schema.optionalKey(Schema.String) },
  success: [
    BatchResults,
    text(ndjson, "One result per line. The last line is no result and has `end: true`"),
    text(csv, "One result per row (RFC 4180). The last row is no result and has the custom_id #end")
  ],
  error: [errorBody("VALIDATION_ERROR"), ...errors]
}).annotateMerge(
  OpenApi.annotations({
    identifier: "listBatchResults",
    summary: "List the results of a batch",
    description:
      `Returns the results in the order of the items, including pending items. The last items may be missing for a few seconds after the upload. Accept selects pages (${json}, the default), or all results as lines (${ndjson}) or as a table ` +
      `(${csv}, in which an apostrophe before text prevents spreadsheets from reading it as a formula). The last line says whether the results are \`complete\`: none ` +
      "is pending or missing. A transfer without that line was cut off.",
    transform: numberParameters({ limit: ResultLimit })
  })
)

const cancel = HttpApiEndpoint.post("cancel", "/v1/batches/:batch_id/cancel", {
  params,
  success: Batch,
  error: [errorBody("API_KEY_REPLACED"), ...errors]
}).annotateMerge(
  OpenApi.annotations({
    identifier: "cancelBatch",
    summary: "Cancel the pending items of a batch",
    description:
      "Charges nothing. Answered items keep their results. The status of the batch is `cancelling` until all pending items are cancelled; the response waits up to 5 seconds for that."
  })
)

export class BatchesApi extends HttpApiGroup.make("batches")
  .add(submit, get, list, results, cancel)
  .middleware(DecodeErrors)
  .middleware(KeyRequired)
  .annotateMerge(OpenApi.annotations({ title: "Batches", description: "Many validations in one request." })) {}
