/** Numbers in paths and queries, and their schemas in the OpenAPI document. */
import { Schema, SchemaTransformation } from "effect"
import { type OpenApi } from "effect/http-api"

const digits = /^(?:0|[1-9]\d{0,15})$/u

/** Parses a whole number in its canonical form; rejects `1e2`, `+1`, `01` and `0x1`. */
export const fromDigits = <S extends Schema.Codec<number>>(number: S) =>
  Schema.String.check(Schema.isPattern(digits, { message: "Expected a whole number, in digits alone" })).pipe(
    Schema.decodeTo(number, SchemaTransformation.numberFromString)
  )

/**
 * Describes parameters by the schemas of their values. They are text on the wire, and the library documents only that: a pattern,
 * without bounds, default and description.
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
