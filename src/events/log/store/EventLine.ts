/**
 * Formats and parses an event as one line of canonical JSON (RFC 8785), the form that auditors get. Replacing `data` and `metadata` with
 * the SHA-256 of their canonical form gives the leaf of the event (EventLeaf.ts).
 */
import { Option, Result, Schema } from "effect"
import * as CanonicalJson from "#events/log/merkle/CanonicalJson.ts"
import { StoredEvent } from "#events/log/store/StoredEvent.ts"

/** The line is not an event in the form that `format` writes. */
export class MalformedLine extends Schema.TaggedError<MalformedLine>()("MalformedLine", { message: Schema.String }) {}

const text = (value: string | null) => JSON.stringify(value)

/**
 * Returns the line of an event: its keys in canonical order, data and metadata as stored. `personal` is the personal document, null
 * once erased, undefined for an event without one.
 */
export const format = (event: StoredEvent, personal?: string | null): string =>
  `{"causation_id":${text(event.causation_id)},"correlation_id":${text(event.correlation_id)},"data":${event.data}` +
  `,"event_id":${text(event.event_id)},"log_id":${event.log_id},"metadata":${event.metadata},"meter_id":${text(event.meter_id)}` +
  `,"occurred_at":${text(event.occurred_at)}${personal === undefined ? "" : `,"personal":${personal}`},"position":${event.position},"recorded_at":${text(event.recorded_at)}` +
  `,"schema_version":${event.schema_version},"stream_id":${text(event.stream_id)},"trace_id":${text(event.trace_id)}` +
  `,"type":${text(event.type)},"units":${event.units},"version":${event.version}}`

const { data: _data, metadata: _metadata, position: _position, version: _version, ...envelope } = StoredEvent.fields
const Line = Schema.Struct({
  ...envelope,
  position: Schema.Int,
  version: Schema.Int,
  data: Schema.Unknown,
  metadata: Schema.Unknown,
  personal: Schema.optionalKey(Schema.Unknown)
})
const decode = Schema.decodeUnknownResult(Schema.fromJsonString(Line))

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))

/** Parses JSON. Returns null if the text is not JSON: only an altered event or document is not JSON. */
export const readJson = (json: string): unknown => Option.getOrNull(decodeJson(json))

export const readData = ({ data }: Pick<StoredEvent, "data">): unknown => readJson(data)

/** Parses the line of an event. Fails unless the line is exactly what `format` writes, so that every change is detected. */
export const parse = (line: string): Result.Result<StoredEvent, MalformedLine> =>
  Result.map(parseWhole(line), ({ event }) => event)

/** A parsed line: the event, its parsed data, and its unverified personal document (null once erased, undefined without one). */
export interface ReadLine {
  readonly event: StoredEvent
  readonly data: unknown
  readonly personal: string | null | undefined
}

/** Parses the line of an event like `parse`, and also returns the parsed data and the personal document. */
export const parseWhole = (line: string): Result.Result<ReadLine, MalformedLine> =>
  Result.gen(function* () {
    const canonical = (value: unknown) =>
      Result.mapError(CanonicalJson.encode(value), ({ message }) => new MalformedLine({ message }))
    const read = yield* Result.mapError(decode(line), () => new MalformedLine({ message: "The line is not an event in JSON" }))
    const { personal: document, ...envelope } = read
    const data = yield* canonical(read.data)
    const event = new StoredEvent({ ...envelope, data, metadata: yield* canonical(read.metadata) })
    const personal = document === undefined || document === null ? document : yield* canonical(document)
    if (format(event, personal) === line) return { event, data: read.data, personal }
    return yield* Result.fail(new MalformedLine({ message: "The line is not an event in canonical form" }))
  })
