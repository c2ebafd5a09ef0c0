/** The OpenAPI document as tests read it. It must contain everything that a generated client relies on. */
import { Schema } from "effect"
import { OpenApi } from "effect/http-api"
import { Api } from "#http/Api.ts"

/** The interface as an OpenAPI 3.1 document, as the service serves it. */
export const openApi = OpenApi.fromApi(Api)

const Part = Schema.Record(Schema.String, Schema.Json)
const Content = Schema.Record(Schema.String, Schema.Struct({ schema: Part, examples: Schema.optionalKey(Part) }))

const Parameter = Schema.Struct({
  name: Schema.String,
  in: Schema.Literals(["path", "query", "header"]),
  required: Schema.Boolean,
  description: Schema.optionalKey(Schema.String),
  schema: Part,
  example: Schema.optionalKey(Schema.Json)
})

const Operation = Schema.Struct({
  operationId: Schema.String,
  summary: Schema.optionalKey(Schema.String),
  description: Schema.optionalKey(Schema.String),
  tags: Schema.Array(Schema.String),
  security: Schema.Array(Schema.Record(Schema.String, Schema.Array(Schema.String))),
  parameters: Schema.Array(Parameter),
  requestBody: Schema.optionalKey(Schema.Struct({ required: Schema.Boolean, content: Content })),
  responses: Schema.Record(
    Schema.String,
    Schema.Struct({
      description: Schema.String,
      headers: Schema.Record(Schema.String, Schema.Struct({ $ref: Schema.String })),
      content: Content
    })
  )
})

const Document = Schema.Struct({
  openapi: Schema.String,
  info: Schema.Struct({ version: Schema.String, description: Schema.String, contact: Part, license: Part }),
  servers: Schema.Array(Schema.Struct({ url: Schema.String })),
  tags: Schema.Array(Schema.Struct({ name: Schema.String, description: Schema.String })),
  paths: Schema.Record(Schema.String, Schema.Record(Schema.String, Operation)),
  components: Schema.Struct({
    schemas: Schema.Record(Schema.String, Part),
    examples: Schema.Record(Schema.String, Part),
    headers: Schema.Record(
      Schema.String,
      Schema.Struct({ description: Schema.String, required: Schema.optionalKey(Schema.Boolean) })
    ),
    securitySchemes: Schema.Record(Schema.String, Schema.Struct({ description: Schema.String }))
  })
})

/** The parts of the document that tests read. */
export const described = Schema.decodeUnknownSync(Document)(openApi)

/** The OpenAPI document, as JSON. */
export const json = Schema.decodeUnknownSync(Schema.Json)(openApi)

/** Every operation with its name, for example `GET /health`. */
export const operations = Object.entries(described.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, method, path, operation }))
)

/** The operations as rows of a table of tests. Vitest prints only 40 characters of `$name`, but the whole first cell. */
export const namedOperations = operations.map((operation) => [operation.name, operation] as const)
