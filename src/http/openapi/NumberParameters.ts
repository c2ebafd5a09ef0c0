/** Decodes numbers in paths and queries, and describes them in the OpenAPI document. */
import { Schema, SchemaTransformation } from "effect"
import { type OpenApi } from "effect/http-api"

const digits = /^(?:0|[1-9]\d{0,15})$/u

/** Returns a schema that decodes the canonical text of a whole number. It rejects `1e2`, `+1`, `01` and `0x1`. */
export const fromDigits = <S extends Schema.Codec<number>>(number: S) =>
  Schema.String.check(Schema.isPattern(digits, { message: "Expected a whole number, written in digits only" })).pipe(
    Schema.decodeTo(number, SchemaTransformation.numberFromString)
  )

/**
 * Returns a transform that describes the named parameters of an operation as numbers, with bounds and defaults. The library describes them
 * as text with a pattern, because they are text in the request.
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
