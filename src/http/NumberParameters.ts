/** What the OpenAPI document says of numbers in a path or a query. */
import { Schema } from "effect"
import { type OpenApi } from "effect/http-api"

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
