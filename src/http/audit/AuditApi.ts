/** Declares the endpoints under /v1/audit: the log and its proofs for auditors, and the public checkpoint and tiles that verify them. */
import { DateTime, Effect, Option, Schema, SchemaIssue, SchemaTransformation } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { AuditorRequired, ProofReaderRequired } from "#http/audit/AuditAuthentication.ts"
import { errorBody } from "#http/pipeline/Errors.ts"
import * as LogPeriod from "#domain/log/LogPeriod.ts"
import { fromDigits, numberParameters } from "#http/openapi/NumberParameters.ts"
import { DecodeErrors } from "#http/pipeline/DecodeErrors.ts"
import { csv, json, ndjson, plain, text } from "#http/wire/MediaTypes.ts"

/** Bounds of the events per page. */
const limits = { minimum: 1, maximum: 1_000 }
export const defaultLimit = 100

/** Bounds of a requested time. No event is older than the Unix epoch, and RFC 3339 has no year after 9999. */
const years = { minimum: DateTime.makeUnsafe(0), maximum: DateTime.makeUnsafe("9999-12-31T23:59:59.999Z") }
const notATime = "Expected a time from 1970 to 9999, such as 2026-11-22T09:30:00Z or 2026-11-22, at most in milliseconds"

/** The exclusive end of the day 9999-12-31. It is in the year 10000, so `withinYears` replaces it by the last millisecond of 9999. */
const endOfYears = DateTime.add(years.maximum, { milliseconds: 1 })
const withinYears = (moment: Option.Option<DateTime.Utc>) =>
  Option.map(Option.filter(moment, DateTime.between({ ...years, maximum: endOfYears })), (within) =>
    DateTime.min(within, years.maximum)
  )

/** Returns the schema of the start or end of the requested period. `momentOf` parses its text. */
const bound = (momentOf: (text: string) => Option.Option<DateTime.Utc>, description: string) =>
  Schema.String.annotate({ description, examples: ["2026-11-22T09:30:00Z"] }).pipe(
    Schema.decodeTo(
      Schema.DateTimeUtc,
      SchemaTransformation.transformEffect({
        decode: (text: string, options) =>
          Option.match(withinYears(momentOf(text)), {
            onNone: () => Effect.fail(new SchemaIssue.InvalidValue({ message: notATime }, text, options)),
            onSome: Effect.succeed
          }),
        encode: (moment) => Effect.succeed(DateTime.formatIso(moment))
      })
    )
  )

const Limit = Schema.Int.check(Schema.isBetween(limits)).annotate({
  description: "Events per page; NDJSON and CSV have no pages",
  default: defaultLimit
})

const Position = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotate({
  description: "Position of the event in the log, from 0 without gaps",
  examples: [0]
})

const Uuid = Schema.String.check(
  Schema.isPattern(/^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/u, { message: "Expected a UUID in lower case" })
)
/** An API key by its key_id or its prefix, as in the command `vatproof key revoke`. */
const Key = Schema.String.check(
  Schema.isPattern(/^(?:[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}|svc_live_[\dA-Za-z]{3})$/u, {
    message: "Expected a key_id (a UUID in lower case) or the first 12 characters of a key"
  })
)
const Name = Schema.String.check(
  Schema.isPattern(/^[\w-]{1,100}$/u, { message: "Expected 1 to 100 characters from A-Z, a-z, 0-9, _ and -" })
)

/**
 * One complete event. The signed leaf of the event differs in two points: it has the SHA-256 of `data` and of `metadata` in their
 * place, and it has no `personal`.
 */
export const AuditEvent = Schema.Struct({
  causation_id: Schema.NullOr(Schema.String),
  correlation_id: Schema.String,
  data: Schema.Json.annotate({ description: "The facts of the event; type and schema_version determine their schema" }),
  event_id: Schema.String,
  log_id: Schema.Int,
  metadata: Schema.Json,
  meter_id: Schema.NullOr(Schema.String).annotate({ description: "The meter that the units are charged to" }),
  occurred_at: Schema.String.annotate({ format: "date-time" }),
  personal: Schema.optionalKey(
    Schema.Json.annotate({
      description:
        "Personal data: names, addresses and the exact exchange with the source. data.personal_sha256 is the SHA-256 of this object as canonical JSON. Null after the erasure"
    })
  ),
  position: Position,
  recorded_at: Schema.String.annotate({ format: "date-time", description: "Time at which the database stored the event" }),
  schema_version: Schema.Int,
  stream_id: Schema.String,
  trace_id: Schema.NullOr(Schema.String),
  type: Schema.String.annotate({ examples: ["VatIdVerified"] }),
  units: Schema.Int.annotate({ description: "Number of validations charged for the event" }),
  version: Schema.Int.annotate({ description: "Version of the stream after this event" })
}).annotate({ identifier: "AuditEvent", description: "An event as stored" })

const AuditEvents = Schema.Struct({
  data: Schema.Array(AuditEvent),
  next_cursor: Schema.NullOr(Schema.String).annotate({
    description: "Cursor of the next page, opaque and valid for a day; null at the end of the log"
  })
}).annotate({ identifier: "AuditEvents", description: "A page of events" })

const ProvedEvent = Schema.Struct({
  position: Position,
  event: AuditEvent,
  proof: Schema.String.annotate({ description: "The proof, as in text/plain" }),
  verifier_key: Schema.NullOr(Schema.String).annotate({
    description: "The public key of the log. Compare it with a copy from another channel"
  })
}).annotate({ identifier: "ProvedEvent", description: "The proof with the event it proves" })

const bytes = Schema.Uint8Array.annotate({ description: "Hashes of 32 bytes each" }).pipe(
  HttpApiSchema.asUint8Array({ contentType: "application/octet-stream" })
)

const unauthorized = errorBody("UNAUTHORIZED")
const invalid = errorBody("VALIDATION_ERROR")
const notFound = errorBody("NOT_FOUND")
const unavailable = errorBody("SERVICE_UNAVAILABLE")

const eventsQuery = {
  from: Schema.optionalKey(
    bound(LogPeriod.startOf, "Events recorded at this time or later. A date alone (2026-11-22) is the start of that day in UTC")
  ),
  to: Schema.optionalKey(
    bound(LogPeriod.endOf, "Events recorded before this time. A date alone (2026-11-22) is the end of that day in UTC")
  ),
  type: Schema.optionalKey(
    Name.annotate({
      description: "Events of this type, for example VatIdVerified or ReceiptIssued",
      examples: ["ReceiptIssued"]
    })
  ),
  account_id: Schema.optionalKey(
    Uuid.annotate({ description: "Events of this account", examples: ["01a20419-0651-7492-bba6-66bcdef57c9c"] })
  ),
  key: Schema.optionalKey(
    Key.annotate({
      description: "Events of this API key: its key_id, or with account_id the first 12 characters of the key",
      examples: ["01a20419-0651-7492-bba6-66bcdef57c9c"]
    })
  ),
  vat_id: Schema.optionalKey(
    Schema.String.annotate({ description: "Events of validations of this VAT ID", examples: ["DE123456789"] })
  ),
  receipt_id: Schema.optionalKey(
    Name.annotate({
      description: "The event that issued this receipt; case-insensitive",
      examples: ["VP-QC-20261120-A7K2M9P4R3"]
    })
  ),
  limit: Schema.optionalKey(fromDigits(Limit)),
  cursor: Schema.optionalKey(Schema.String.annotate({ description: "next_cursor of the previous page, with the same filters" }))
}

/**
 * The names of all filters. A request with any other name is rejected. Otherwise the auditor would believe that the service had applied
 * the filter.
 */
export const knownFilters: ReadonlyArray<string> = Object.keys(eventsQuery)

const events = HttpApiEndpoint.get("events", "/v1/audit/events", {
  query: eventsQuery,
  headers: { accept: Schema.optionalKey(Schema.String) },
  success: [
    AuditEvents,
    text(ndjson, "One event per line, oldest first, up to the end of the log"),
    text(csv, "One event per row (RFC 4180), oldest first, up to the end of the log")
  ],
  error: [invalid, errorBody("INVALID_VAT_ID"), unauthorized, unavailable]
}).annotateMerge(
  OpenApi.annotations({
    identifier: "listAuditEvents",
    summary: "Read the log",
    description:
      "Returns events, oldest first. An auditor of one account sees only the events of that account. The log records each reading, once for all its pages. " +
      `Accept selects pages (${json}, the default), or all events as lines (${ndjson}) or as a table (${csv}, in which an apostrophe ` +
      "before text prevents spreadsheets from reading it as a formula). An unknown filter or type is a 400, whose message lists the known ones.",
    transform: numberParameters({ limit: Limit })
  })
)

const event = HttpApiEndpoint.get("event", "/v1/audit/events/:position", {
  params: { position: fromDigits(Position) },
  success: AuditEvent,
  error: [invalid, unauthorized, notFound, unavailable]
}).annotateMerge(
  OpenApi.annotations({
    identifier: "getAuditEvent",
    summary: "Get an event by its position",
    description:
      "Returns one event. An auditor of one account sees only the events of that account. The log records each reading.",
    transform: numberParameters({ position: Position })
  })
)

const proof = HttpApiEndpoint.get("proof", "/v1/audit/proofs/:subject", {
  params: {
    subject: Schema.String.annotate({
      description: "Id of a receipt, or position of an event",
      examples: ["VP-QC-20261120-A7K2M9P4R3"]
    })
  },
  headers: { accept: Schema.optionalKey(Schema.String) },
  success: [text(plain, "A self-contained proof (c2sp.org/tlog-proof); `extra` is the leaf of the event"), ProvedEvent],
  error: [invalid, unauthorized, notFound, unavailable]
}).annotateMerge(
  OpenApi.annotations({
    identifier: "getAuditProof",
    summary: "Prove that an event is in the log",
    description:
      "Returns a proof that an event, such as the issue of a receipt, is in the log. For auditors, and for the API key of the receipt. `vatproof audit verify --proof FILE` verifies the proof offline. " +
      `Accept selects the proof (${plain}, the default) or the proof with its event (${json}).`
  })
)

const checkpoint = HttpApiEndpoint.get("checkpoint", "/v1/audit/checkpoint", {
  success: text(plain, "A signed note (c2sp.org/tlog-checkpoint): name, size and root of the log"),
  error: [notFound, unavailable]
}).annotateMerge(
  OpenApi.annotations({
    identifier: "getCheckpoint",
    summary: "Get the newest signed checkpoint",
    description:
      "Returns the size and the root hash of the log, signed. Public. Keep copies: with a copy you can verify that a later log continues this one."
  })
)

const tile = HttpApiEndpoint.get("tile", "/v1/audit/tile/*", {
  // The path of the tile. `TilePaths` replaces this parameter in the OpenAPI document.
  params: { "*": Schema.String },
  success: bytes,
  error: [notFound, unavailable]
}).annotateMerge(
  OpenApi.annotations({
    identifier: "getTile",
    summary: "Get a tile of the signed tree",
    description: "Returns hashes of the log (c2sp.org/tlog-tiles). Public, because hashes do not reveal the events."
  })
)

export class AuditApi extends HttpApiGroup.make("audit")
  .add(events.middleware(DecodeErrors).middleware(AuditorRequired))
  .add(event.middleware(DecodeErrors).middleware(AuditorRequired))
  .add(proof.middleware(DecodeErrors).middleware(ProofReaderRequired))
  .add(checkpoint)
  .add(tile)
  .annotateMerge(
    OpenApi.annotations({
      title: "Audit",
      description: "The log for auditors and its proofs; the signed checkpoint and its tiles for everyone."
    })
  ) {}
