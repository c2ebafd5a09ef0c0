/**
 * The examples of the OpenAPI document: responses of the service with the sandbox's sources, recorded by
 * test/http/openapi/OpenApiExamples.test.ts.
 */
import { Record as Rec, Schema } from "effect"
import recorded from "#http/openapi/examples.json" with { type: "json" }

const Named = Schema.Record(Schema.String, Schema.Json)

const Examples = Schema.Struct({
  /** By code. */
  errors: Named,
  /** By operation and name. */
  requests: Schema.Record(Schema.String, Named),
  /** By operation, status, media type and name. */
  responses: Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Record(Schema.String, Named)))
})

const { errors, requests, responses } = Schema.decodeUnknownSync(Examples)(recorded)

/** One example per error code, as components of the document. */
export const errorExamples = Rec.map(errors, (value) => ({ value }))

/** The additions to the content of a body with examples. */
const shown = (named: typeof Named.Type | undefined) =>
  named === undefined ? {} : { examples: Rec.map(named, (value) => ({ value })) }

/** Bodies that are text are examples of other media types than JSON: those of the type whose name has the example's. */
export const requestExamples = (operationId: string, mediaType: string) =>
  shown(
    Rec.filter(requests[operationId] ?? {}, (value, name) =>
      typeof value === "string" ? mediaType.endsWith(name) : mediaType === "application/json"
    )
  )

export const responseExamples = (operationId: string, status: number, mediaType: string) =>
  shown(responses[operationId]?.[String(status)]?.[mediaType])

/** References to the examples of the codes in a text. */
export const errorExamplesIn = (text: string) => {
  const words = new Set(text.split(/\W+/u))
  const codes = Object.keys(errors).filter((code) => words.has(code))
  return codes.length === 0
    ? {}
    : { examples: Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }])) }
}
