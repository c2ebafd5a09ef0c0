/** Numbers in a path or a query, and what the OpenAPI document says of them. */
import { Schema, SchemaTransformation } from "effect"
import { type OpenApi } from "effect/http-api"

const digits = /^(?:0|[1-9]\d{0,15})$/u

/** Reads a whole number in its one usual spelling: `1e2`, `+1`, `01` and `0x1` are none. */
export const fromDigits = <S extends Schema.Codec<number>>(number: S) =>
  Schema.String.check(Schema.isPattern(digits, { message: "Expected a whole number, in digits alone" })).pipe(
    Schema.decodeTo(number, SchemaTransformation.numberFromString)
  )

/**
 * Describes parameters of one operation by the schemas of what they mean. On the wire they are text, and of that alone the library
 * tells: its pattern, without bounds, default and description.
 */
export const numberParameters =
  (schemas: Readonly<Record<string, Schema.Schema<number>>>): OpenApi.Transform["Service"] =>
  ({ parameters, ...operation }) => ({ ...operation, parameters: describe(parameters, schemas) })

const describe = (
  parameters: ReadonlyArray<OpenApi.OpenAPISpecParameter>,
  schemas: Readonly<Record<string, Schema.Schema<number>>>
) =>
  parameters.map((parameter) => {
    const schema = schemas[parameter.name]
    return schema === undefined ? parameter : { ...parameter, schema: Schema.toJsonSchemaDocument(schema).schema }
  })
