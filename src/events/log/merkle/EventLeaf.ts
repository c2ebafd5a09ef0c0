/**
 * The leaf of an event: the canonical JSON (RFC 8785) of its envelope, with SHA-256 digests in place of data and metadata. A leaf
 * can be published without the data, and the data can be verified against the leaf later.
 *
 * The code contains the JSON keys of a leaf in sorted order, which is three times faster than sorting them for each event. A test
 * compares the result with CanonicalJson.encode.
 */
import { Result, Schema } from "effect"

/**
 * The envelope of a stored event. Ids are lower-case UUIDs, `trace_id` is 32 hex digits. Times are UTC with six decimals
 * (`2026-11-21T09:30:00.123456Z`), as in the database. Digests are 64 hex digits over the UTF-8 bytes of the stored texts.
 */
export interface EventEnvelope {
  readonly log_id: number
  readonly position: number
  readonly stream_id: string
  readonly version: number
  readonly event_id: string
  readonly type: string
  readonly schema_version: number
  readonly occurred_at: string
  readonly recorded_at: string
  readonly correlation_id: string
  readonly causation_id: string | null
  readonly trace_id: string | null
  readonly meter_id: string | null
  readonly units: number
  readonly data_sha256: string
  readonly metadata_sha256: string
}

/** A field of the envelope is malformed, so the leaf of the event would be ambiguous. */
export class MalformedEnvelope extends Schema.TaggedError<MalformedEnvelope>()("MalformedEnvelope", {
  position: Schema.Number,
  field: Schema.String
}) {
  override get message() {
    return `The event at position ${this.position} has a malformed ${this.field}`
  }
}

const uuid = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/u
const digest = /^[\da-f]{64}$/u
const trace = /^[\da-f]{32}$/u
const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/u

/** Returns the first malformed field. The patterns allow only characters that JSON does not escape; texts that `isText` checks need escaping. */
const malformedField = (event: EventEnvelope): keyof EventEnvelope | undefined => {
  if (!isCount(event.log_id)) return "log_id"
  if (!isCount(event.position)) return "position"
  if (!isText(event.stream_id)) return "stream_id"
  if (!isCount(event.version)) return "version"
  if (!uuid.test(event.event_id)) return "event_id"
  if (!isText(event.type)) return "type"
  if (!isCount(event.schema_version)) return "schema_version"
  if (!instant.test(event.occurred_at)) return "occurred_at"
  if (!instant.test(event.recorded_at)) return "recorded_at"
  if (!uuid.test(event.correlation_id)) return "correlation_id"
  if (event.causation_id !== null && !uuid.test(event.causation_id)) return "causation_id"
  if (event.trace_id !== null && !trace.test(event.trace_id)) return "trace_id"
  if (event.meter_id !== null && !isText(event.meter_id)) return "meter_id"
  if (!Number.isSafeInteger(event.units)) return "units"
  if (!digest.test(event.data_sha256)) return "data_sha256"
  if (!digest.test(event.metadata_sha256)) return "metadata_sha256"
  return undefined
}

const isCount = (value: number) => Number.isSafeInteger(value) && value >= 0

/**
 * Returns true for a text that a leaf can contain. An envelope has three such texts: `stream_id`, `type` and `meter_id`. Even if
 * JSON escapes each character to six characters, the leaf stays far below 64 KiB.
 */
const isText = (value: string) => value.length <= 2048 && value.isWellFormed()

/** Returns the leaf as text, the input of `MerkleTree.leafHash`. */
export const leafText = (event: EventEnvelope): Result.Result<string, MalformedEnvelope> => {
  const field = malformedField(event)
  if (field !== undefined) return Result.fail(new MalformedEnvelope({ position: event.position, field }))
  return Result.succeed(
    `{"causation_id":${quoted(event.causation_id)},"correlation_id":"${event.correlation_id}"` +
      `,"data_sha256":"${event.data_sha256}","event_id":"${event.event_id}","log_id":${event.log_id}` +
      `,"metadata_sha256":"${event.metadata_sha256}","meter_id":${JSON.stringify(event.meter_id)}` +
      `,"occurred_at":"${event.occurred_at}","position":${event.position},"recorded_at":"${event.recorded_at}"` +
      `,"schema_version":${event.schema_version},"stream_id":${JSON.stringify(event.stream_id)}` +
      `,"trace_id":${quoted(event.trace_id)},"type":${JSON.stringify(event.type)},"units":${event.units},"version":${event.version}}`
  )
}

const quoted = (value: string | null) => (value === null ? "null" : `"${value}"`)
