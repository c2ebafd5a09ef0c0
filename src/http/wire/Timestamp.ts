/** A time as requests and responses write it. */
import { Schema, SchemaTransformation } from "effect"

/** As Schema.DateTimeUtcFromString, which does not tell the OpenAPI document that its text is a time (RFC 3339). */
export const Timestamp = Schema.String.annotate({ format: "date-time" }).pipe(
  Schema.decodeTo(Schema.DateTimeUtc, SchemaTransformation.dateTimeUtcFromString)
)
