/** Media types of responses other than JSON, and their schemas in the declarations of endpoints. */
import { Schema } from "effect"
import { HttpApiSchema } from "effect/http-api"

export const json = "application/json"
export const ndjson = "application/x-ndjson"
export const csv = "text/csv"
export const plain = "text/plain"
const html = "text/html"

/** Returns the schema of a body that is text in a media type. */
export const text = (contentType: string, description: string) =>
  Schema.String.annotate({ description }).pipe(HttpApiSchema.asText({ contentType }))

/** Returns the schema of an HTML page. */
export const page = (description: string) => text(html, description)
