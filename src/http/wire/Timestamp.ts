/** The schema of times in requests and responses. */
import { Schema, SchemaTransformation } from "effect"

/** Decodes a time like Schema.DateTimeUtcFromString, and has the format date-time (RFC 3339) in the OpenAPI document. */
export const Timestamp = Schema.String.annotate({ format: "date-time" }).pipe(
  Schema.decodeTo(Schema.DateTimeUtc, SchemaTransformation.dateTimeUtcFromString)
)
