/**
 * A whole event on one line of canonical JSON (RFC 8785), data and metadata included: what auditors get. From it anybody can compute the
 * event's leaf (EventLeaf.ts): SHA-256 over the canonical form of `data` and of `metadata` takes their place.
 */
import { Option, Result, Schema } from "effect"
import * as CanonicalJson from "#events/log/CanonicalJson.ts"
import { StoredEvent } from "#events/StoredEvent.ts"

/** The line is not what an event is written as. */
export class MalformedLine extends Schema.TaggedError<MalformedLine>()("MalformedLine", { message: Schema.String }) {}

const text = (value: string | null) => JSON.stringify(value)

/** The keys stand in their canonical order; data and metadata are copied as they are stored. */
export const format = (event: StoredEvent): string =>
  `{"causation_id":${text(event.causation_id)},"correlation_id":${text(event.correlation_id)},"data":${event.data}` +
  `,"event_id":${text(event.event_id)},"log_id":${event.log_id},"metadata":${event.metadata},"meter_id":${text(event.meter_id)}` +
  `,"occurred_at":${text(event.occurred_at)},"position":${event.position},"recorded_at":${text(event.recorded_at)}` +
  `,"schema_version":${event.schema_version},"stream_id":${text(event.stream_id)},"trace_id":${text(event.trace_id)}` +
  `,"type":${text(event.type)},"units":${event.units},"version":${event.version}}`

const { data: _data, metadata: _metadata, position: _position, version: _version, ...envelope } = StoredEvent.fields
const Line = Schema.Struct({
  ...envelope,
  position: Schema.Int,
  version: Schema.Int,
  data: Schema.Unknown,
  metadata: Schema.Unknown
})
const decode = Schema.decodeUnknownResult(Schema.fromJsonString(Line))

const readJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))

/** The data of an event; null if it is no JSON, which no event of ours is. */
export const readData = ({ data }: StoredEvent): unknown => Option.getOrNull(readJson(data))

/** Reads a line back. Only the exact text that `format` writes is accepted, so that nothing in it can be changed unnoticed. */
export const parse = (line: string): Result.Result<StoredEvent, MalformedLine> =>
  Result.map(parseWithData(line), ({ event }) => event)

/** The same, with the event's data read. */
export const parseWithData = (
  line: string
): Result.Result<{ readonly event: StoredEvent; readonly data: unknown }, MalformedLine> =>
  Result.gen(function* () {
    const read = yield* Result.mapError(decode(line), () => new MalformedLine({ message: "This is no event" }))
    const data = yield* Result.mapError(CanonicalJson.encode(read.data), ({ message }) => new MalformedLine({ message }))
    const metadata = yield* Result.mapError(CanonicalJson.encode(read.metadata), ({ message }) => new MalformedLine({ message }))
    const event = new StoredEvent({ ...read, data, metadata })
    if (format(event) === line) return { event, data: read.data }
    return yield* Result.fail(new MalformedLine({ message: "This is no event in canonical form" }))
  })
