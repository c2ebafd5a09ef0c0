/** An event as the database stores it. */
import { Schema } from "effect"
import { Int8 } from "#events/log/database/Rows.ts"

/** Returns SQL for a time as text, in UTC with microseconds; null for an infinite time. */
export const utcText = (column: string) => `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`

/** Returns SQL for a time as text. An infinite time, which only an altered event has, becomes `infinity`: verification reports it. */
const instant = (column: string) => `coalesce(${utcText(column)}, ${column}::text) AS ${column}`

/**
 * A row of `vatproof.events`. `occurred_at` and `recorded_at` are UTC with exactly six decimals. `trace_id` is hexadecimal. `data` and
 * `metadata` are the stored bytes, which are canonical JSON.
 */
export class StoredEvent extends Schema.Class<StoredEvent>("StoredEvent")({
  log_id: Schema.Int,
  position: Int8,
  stream_id: Schema.String,
  version: Int8,
  event_id: Schema.String,
  type: Schema.String,
  schema_version: Schema.Int,
  occurred_at: Schema.String,
  recorded_at: Schema.String,
  correlation_id: Schema.String,
  causation_id: Schema.NullOr(Schema.String),
  trace_id: Schema.NullOr(Schema.String),
  meter_id: Schema.NullOr(Schema.String),
  units: Schema.Int,
  data: Schema.String,
  metadata: Schema.String
}) {
  /** The columns of a SELECT whose rows decode to this class. */
  static readonly columns = `log_id, position, stream_id, version, event_id, type, schema_version,
    ${instant("occurred_at")}, ${instant("recorded_at")},
    correlation_id, causation_id, encode(trace_id, 'hex') AS trace_id, meter_id, units, data, metadata`
  /** The columns of a SELECT from a subquery that has this alias and selects `columns`. */
  static readonly columnsOf = (alias: string) =>
    Object.keys(this.fields)
      .map((name) => `${alias}.${name}`)
      .join(", ")
}
