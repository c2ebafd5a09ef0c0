/** Reads the OpenAPI document into a list of calls with inputs, bodies and fields. The texts for agents are made from it. */
import { Predicate, Record as Rec, Schema } from "effect"
import type { OpenApi } from "effect/http-api"

const Part = Schema.Record(Schema.String, Schema.Json)
type Part = typeof Part.Type

const Example = Schema.Struct({ value: Schema.optionalKey(Schema.Json), $ref: Schema.optionalKey(Schema.String) })
const Content = Schema.Record(
  Schema.String,
  Schema.Struct({ schema: Part, examples: Schema.optionalKey(Schema.Record(Schema.String, Example)) })
)

const Parameter = Schema.Struct({
  name: Schema.String,
  in: Schema.Literals(["path", "query", "header"]),
  required: Schema.Boolean,
  description: Schema.optionalKey(Schema.String),
  schema: Part
})

const Operation = Schema.Struct({
  operationId: Schema.String,
  summary: Schema.String,
  description: Schema.String,
  tags: Schema.Array(Schema.String),
  security: Schema.Array(Schema.Record(Schema.String, Schema.Array(Schema.String))),
  parameters: Schema.Array(Parameter),
  requestBody: Schema.optionalKey(Schema.Struct({ required: Schema.Boolean, content: Content })),
  responses: Schema.Record(Schema.String, Schema.Struct({ description: Schema.String, content: Content }))
})

const Document = Schema.Struct({
  info: Schema.Struct({ title: Schema.String, version: Schema.String, description: Schema.String }),
  tags: Schema.Array(Schema.Struct({ name: Schema.String, description: Schema.String })),
  paths: Schema.Record(Schema.String, Schema.Record(Schema.String, Operation)),
  components: Schema.Struct({
    schemas: Schema.Record(Schema.String, Part),
    examples: Schema.optionalKey(Schema.Record(Schema.String, Example))
  })
})

const decode = Schema.decodeUnknownSync(Document)

/** A field of a body by its path, for example `requests.used` or `api_keys[].id`. */
export interface Field {
  readonly name: string
  readonly type: string
  readonly description: string
}

/** A parameter of a call. `choices` lists all allowed values; it is empty if any text is allowed. */
export interface Input {
  readonly name: string
  readonly place: "path" | "query" | "header"
  readonly isRequired: boolean
  readonly type: string
  readonly description: string
  readonly choices: ReadonlyArray<string>
}

/** A body in one media type. The text of a JSON example is indented. */
export interface Body {
  readonly mediaType: string
  readonly fields: ReadonlyArray<Field>
  readonly examples: ReadonlyArray<{ readonly name: string; readonly text: string }>
}

export interface Reply {
  readonly status: string
  readonly description: string
  readonly bodies: ReadonlyArray<Body>
}

/** An operation. A request must use one of the security `schemes`, unless `isOpen` is true. */
export interface Call {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly summary: string
  readonly description: string
  readonly schemes: ReadonlyArray<string>
  readonly isOpen: boolean
  readonly inputs: ReadonlyArray<Input>
  readonly body: Body | null
  readonly replies: ReadonlyArray<Reply>
}

export interface Reference {
  readonly title: string
  readonly version: string
  readonly introduction: string
  readonly groups: ReadonlyArray<{ readonly name: string; readonly description: string; readonly calls: ReadonlyArray<Call> }>
}

export const makeReference = (openApi: OpenApi.OpenAPISpec): Reference => {
  const { components, info, paths, tags } = decode(openApi)
  const read = makeReader(components)
  const calls = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ tags: operation.tags, call: callOf(read, method, path, operation) }))
  )
  return {
    title: info.title,
    version: info.version,
    introduction: info.description,
    groups: tags.map(({ description, name }) => ({
      name,
      description,
      calls: calls.filter(({ tags }) => tags.includes(name)).map(({ call }) => call)
    }))
  }
}

type Reader = ReturnType<typeof makeReader>

const callOf = (read: Reader, method: string, path: string, operation: typeof Operation.Type): Call => {
  const { description, operationId, parameters, requestBody, responses, security, summary } = operation
  return {
    id: operationId,
    method: method.toUpperCase(),
    path,
    summary,
    description,
    schemes: security.flatMap((requirement) => Object.keys(requirement)),
    isOpen: security.length === 0 || security.some((requirement) => Object.keys(requirement).length === 0),
    inputs: parameters.map((parameter) => inputOf(read, parameter)),
    body: requestBody === undefined ? null : (read.bodies(requestBody.content)[0] ?? null),
    replies: Object.entries(responses).map(([status, response]) => ({
      status,
      description: response.description,
      bodies: read.bodies(response.content)
    }))
  }
}

const inputOf = (read: Reader, parameter: typeof Parameter.Type): Input => {
  const { description = "", in: place, name, required, schema } = parameter
  const values = schema["enum"]
  return {
    name,
    place,
    isRequired: required,
    type: read.type(schema),
    description,
    choices: Array.isArray(values) ? values.map(textOf) : []
  }
}

/** Maximum nesting depth of the listed fields. */
const maxDepth = 4

const isPart = (value: unknown): value is Part => Predicate.isObject(value) && !Array.isArray(value)
const partsIn = (value: unknown): ReadonlyArray<Part> => (Array.isArray(value) ? value.filter(isPart) : [])

/** Creates functions that read schemas and bodies. They resolve references to the components of the document. */
const makeReader = ({ examples = {}, schemas }: (typeof Document.Type)["components"]) => {
  const resolved = (part: Part): Part => {
    const reference = part["$ref"]
    return typeof reference === "string" ? (schemas[reference.replace("#/components/schemas/", "")] ?? part) : part
  }
  const alternatives = (part: Part): ReadonlyArray<Part> =>
    [...partsIn(part["anyOf"]), ...partsIn(part["oneOf"])].map(resolved).filter(({ type }) => type !== "null")

  const type = (schema: Part): string => {
    const part = resolved(schema)
    const among = alternatives(part)
    if (among.length > 0) {
      const isNullable = partsIn(part["anyOf"]).some((one) => one["type"] === "null")
      return [...new Set(among.map(type)), ...(isNullable ? ["null"] : [])].join(" or ")
    }
    const values = part["enum"] ?? part["x-extensible-enum"]
    if (Array.isArray(values)) return values.map((value) => JSON.stringify(value)).join(", ")
    if (part["type"] === "array") return isPart(part["items"]) ? `list of ${type(part["items"])}` : "list"
    const format = part["format"]
    return `${textOf(part["type"] ?? "anything")}${typeof format === "string" ? ` (${format})` : ""}`
  }

  const fields = (schema: Part, prefix = "", depth = 0): ReadonlyArray<Field> => {
    const part = resolved(schema)
    if (depth > maxDepth) return []
    const { additionalProperties, items, properties } = part
    const within = [
      ...alternatives(part).flatMap((one) => fields(one, prefix, depth + 1)),
      ...(isPart(items) ? fields(items, `${prefix.replace(/\.$/u, "")}[].`, depth + 1) : []),
      ...(isPart(additionalProperties) ? fields(additionalProperties, `${prefix}{…}.`, depth + 1) : []),
      ...(isPart(properties) ? Object.entries(properties) : []).flatMap(([name, value]) => {
        if (!isPart(value)) return []
        const description = value["description"] ?? resolved(value)["description"] ?? ""
        const field = { name: `${prefix}${name}`, type: type(value), description: textOf(description) }
        return [field, ...fields(value, `${prefix}${name}.`, depth + 1)]
      })
    ]
    return [...new Map(within.map((field) => [field.name, field])).values()]
  }

  const bodies = (content: typeof Content.Type): ReadonlyArray<Body> =>
    Object.values(
      Rec.map(content, ({ examples: shown = {}, schema }, mediaType) => ({
        mediaType,
        fields: fields(schema),
        examples: Object.entries(shown).map(([name, { $ref, value }]) => ({
          name,
          text: textOf(value ?? examples[($ref ?? "").replace("#/components/examples/", "")]?.value ?? "")
        }))
      }))
    )

  return { type, fields, bodies }
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value, null, 2))
