/** The audit surface: the log for auditors, its proofs, and what everybody may check it with (checkpoint and tiles). */
import { DateTime, Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { AuditorRequired, ProofReaderRequired } from "#http/AuditAuthentication.ts"
import { errorBody } from "#http/Errors.ts"
import { RequestErrors } from "#http/RequestErrors.ts"

/** Events of a page. */
const limits = { minimum: 1, maximum: 1_000 }
export const defaultLimit = 100

/** A stream of lines and a checkpoint are text of their own kind. */
export const ndjson = "application/x-ndjson"
export const json = "application/json"
export const plain = "text/plain"

/** No event was recorded before the epoch, and no database counts much beyond the year 9999. */
const years = { minimum: DateTime.makeUnsafe(0), maximum: DateTime.makeUnsafe("9999-12-31T23:59:59.999Z") }
const Moment = Schema.DateTimeUtcFromString.check(
  Schema.makeFilter((moment) => DateTime.between(moment, years) || "Expected a time from 1970 to 9999")
)
const Uuid = Schema.String.check(
  Schema.isPattern(/^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/u, { message: "Expected a UUID in lower case" })
)
const Name = Schema.String.check(Schema.isPattern(/^[\w-]{1,100}$/u, { message: "Expected 1 to 100 of A-Z, a-z, 0-9, _ and -" }))

/** One event, whole. `data` and `metadata` are the facts; without the two it is the leaf that was signed, with their SHA-256 instead. */
export const AuditEvent = Schema.Struct({
  causation_id: Schema.NullOr(Schema.String),
  correlation_id: Schema.String,
  data: Schema.Json,
  event_id: Schema.String,
  log_id: Schema.Int,
  metadata: Schema.Json,
  meter_id: Schema.NullOr(Schema.String),
  occurred_at: Schema.String,
  position: Schema.Int,
  recorded_at: Schema.String,
  schema_version: Schema.Int,
  stream_id: Schema.String,
  trace_id: Schema.NullOr(Schema.String),
  type: Schema.String,
  units: Schema.Int,
  version: Schema.Int
}).annotate({ identifier: "AuditEvent" })

const AuditEvents = Schema.Struct({
  data: Schema.Array(AuditEvent),
  next_cursor: Schema.NullOr(Schema.String).annotate({ description: "Opaque, good for a day; null at the end of the log" })
}).annotate({ identifier: "AuditEvents" })

const ProvedEvent = Schema.Struct({
  position: Schema.Int,
  event: AuditEvent,
  proof: Schema.String.annotate({ description: "The same proof as text/plain gives" }),
  verifier_key: Schema.NullOr(Schema.String).annotate({ description: "Get it from elsewhere too before you trust it" })
}).annotate({ identifier: "ProvedEvent" })

const text = (contentType: string, description: string) =>
  Schema.String.annotate({ description }).pipe(HttpApiSchema.asText({ contentType }))

const bytes = Schema.Uint8Array.annotate({ description: "32 bytes a hash" }).pipe(
  HttpApiSchema.asUint8Array({ contentType: "application/octet-stream" })
)

const unauthorized = errorBody(401, ["UNAUTHORIZED"])
const invalid = errorBody(400, ["VALIDATION_ERROR"])
const notFound = errorBody(404, ["NOT_FOUND"])
const unavailable = errorBody(503, ["SERVICE_UNAVAILABLE"])

const events = HttpApiEndpoint.get("events", "/v1/audit/events", {
  query: {
    from: Schema.optionalKey(Moment.annotate({ description: "Recorded at this time or later" })),
    to: Schema.optionalKey(Moment.annotate({ description: "Recorded before this time" })),
    type: Schema.optionalKey(Name.annotate({ description: "For example VatIdVerified or ReceiptIssued" })),
    account_id: Schema.optionalKey(Uuid),
    vat_id: Schema.optionalKey(Schema.String.annotate({ description: "The VAT ID that was asked about" })),
    receipt_id: Schema.optionalKey(Name),
    limit: Schema.optionalKey(
      Schema.Int.check(Schema.isBetween(limits)).annotate({
        description: `1 to ${limits.maximum}, default ${defaultLimit}; JSON only`
      })
    ),
    cursor: Schema.optionalKey(Schema.String.annotate({ description: "next_cursor of the previous page, with the same filters" }))
  },
  headers: {
    accept: Schema.optionalKey(
      Schema.String.annotate({ description: `${json} (default): a page; ${ndjson}: everything, one event a line` })
    )
  },
  success: [AuditEvents, text(ndjson, "One event a line, oldest first, up to the log's end")],
  error: [invalid, errorBody(400, ["INVALID_VAT_ID"]), unauthorized, unavailable]
}).annotateMerge(
  OpenApi.annotations({
    summary: "Read the log",
    description:
      "Oldest first. An auditor of one account sees the events of that account. That the log was read is itself recorded, once for all pages."
  })
)

const event = HttpApiEndpoint.get("event", "/v1/audit/events/:position", {
  params: { position: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)) },
  success: AuditEvent,
  error: [invalid, unauthorized, notFound, unavailable]
}).annotateMerge(OpenApi.annotations({ summary: "One event by its position" }))

const proof = HttpApiEndpoint.get("proof", "/v1/audit/proofs/:subject", {
  params: { subject: Schema.String.annotate({ description: "A receipt's id, or a position" }) },
  headers: {
    accept: Schema.optionalKey(
      Schema.String.annotate({ description: `${plain} (default): a c2sp.org/tlog-proof; ${json}: with the event it proves` })
    )
  },
  success: [text(plain, "A proof that stands alone (c2sp.org/tlog-proof); `extra` is the event's leaf"), ProvedEvent],
  error: [invalid, unauthorized, notFound, unavailable]
}).annotateMerge(
  OpenApi.annotations({
    summary: "Prove that an event is in the log",
    description:
      "For auditors, and for the API key that a receipt was issued to. Verifies offline: `vatproof audit verify --proof FILE`."
  })
)

const checkpoint = HttpApiEndpoint.get("checkpoint", "/v1/audit/checkpoint", {
  success: text(plain, "A signed note (c2sp.org/tlog-checkpoint): name, size and root of the log"),
  error: [notFound, unavailable]
}).annotateMerge(OpenApi.annotations({ summary: "The newest signed checkpoint", description: "Public: keep copies of it." }))

const tile = HttpApiEndpoint.get("tile", "/v1/audit/tile/*", {
  params: { "*": Schema.String.annotate({ description: "<level>/<index>, or <level>/<index>.p/<width>" }) },
  success: bytes,
  error: [notFound, unavailable]
}).annotateMerge(
  OpenApi.annotations({
    summary: "A tile of the signed tree",
    description: "Public (c2sp.org/tlog-tiles): hashes of the log, and nothing of what is in it."
  })
)

export class AuditApi extends HttpApiGroup.make("audit")
  .add(events.middleware(RequestErrors).middleware(AuditorRequired))
  .add(event.middleware(RequestErrors).middleware(AuditorRequired))
  .add(proof.middleware(RequestErrors).middleware(ProofReaderRequired))
  .add(checkpoint)
  .add(tile) {}
