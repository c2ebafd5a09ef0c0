/**
 * Reads the examples of the OpenAPI document from examples.json. test/http/openapi/OpenApiExamples.test.ts records them from responses of a
 * service that calls the sandbox instead of the official sources.
 */
import { Record as Rec, Schema } from "effect"
import recorded from "#http/openapi/examples.json" with { type: "json" }

const Named = Schema.Record(Schema.String, Schema.Json)

const Examples = Schema.Struct({
  /** Error bodies by error code. */
  errors: Named,
  /** Request bodies by operation id and name of the example. */
  requests: Schema.Record(Schema.String, Named),
  /** Response bodies by operation id, status, media type and name of the example. */
  responses: Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Record(Schema.String, Named)))
})

const { errors, requests, responses } = Schema.decodeUnknownSync(Examples)(recorded)

/** One example per error code, as components of the document. */
export const errorExamples = Rec.map(errors, (value) => ({ value }))

/** Returns an object with the `examples` of a body; empty if there are none. */
const shown = (named: typeof Named.Type | undefined) =>
  named === undefined ? {} : { examples: Rec.map(named, (value) => ({ value })) }

/** Returns the examples of a request body. An example that is text is named after the end of its media type, such as `csv`; all others are JSON. */
export const requestExamples = (operationId: string, mediaType: string) =>
  shown(
    Rec.filter(requests[operationId] ?? {}, (value, name) =>
      typeof value === "string" ? mediaType.endsWith(name) : mediaType === "application/json"
    )
  )

export const responseExamples = (operationId: string, status: number, mediaType: string) =>
  shown(responses[operationId]?.[String(status)]?.[mediaType])

/** Returns references to the examples of the error codes that occur in a text. */
export const errorExamplesIn = (text: string) => {
  const words = new Set(text.split(/\W+/u))
  const codes = Object.keys(errors).filter((code) => words.has(code))
  return codes.length === 0
    ? {}
    : { examples: Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }])) }
}
