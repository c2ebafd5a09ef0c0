// Prints what the clients know about the interface, from openapi.json: `node scripts/client-types.mjs typescript`, or `python`.
//
// The auditors' operations are left out: those of the group "Audit" that accept no API key.
import { readFileSync } from "node:fs"
import { join } from "node:path"

const { components, paths } = JSON.parse(readFileSync(join(import.meta.dirname, "../openapi.json"), "utf8"))

const pascal = (id) => id[0].toUpperCase() + id.slice(1)
const snake = (id) => id.replaceAll(/[A-Z]/gu, (letter) => `_${letter.toLowerCase()}`)
const json = ({ content = {} }) => content["application/json"]?.schema
const isAuditors = ({ security = [], tags }) => tags.includes("Audit") && !security.some((scheme) => "apiKey" in scheme)

/** Parameters of one place as the schema of an object. */
const objectOf = (parameters) => ({
  type: "object",
  properties: Object.fromEntries(parameters.map(({ name, schema }) => [name, schema])),
  required: parameters.filter(({ required }) => required).map(({ name }) => name)
})

const describe = (path, method, { operationId, parameters = [], requestBody = {}, responses, security = [] }) => {
  const of = (place) => parameters.filter((parameter) => parameter.in === place)
  const results = Object.entries(responses).filter(([status]) => status.startsWith("2"))
  const bodies = [...new Map(results.map(([, response]) => [JSON.stringify(json(response)), json(response)])).values()]
  const accepts = (scheme) => security.some((one) => scheme in one)
  return {
    id: operationId,
    method: method.toUpperCase(),
    path,
    credential: accepts("apiKey") ? (accepts("bearer") ? "either" : "apiKey") : accepts("bearer") ? "token" : "none",
    idempotent: of("header").some(({ name }) => name === "idempotency-key"),
    inputs: [
      ["path", of("path"), objectOf(of("path"))],
      ["query", of("query"), objectOf(of("query"))],
      ["body", json(requestBody) === undefined ? [] : [{ required: requestBody.required }], json(requestBody)]
    ].filter(([, fields]) => fields.length > 0),
    result: bodies[0] === undefined ? undefined : { anyOf: bodies }
  }
}

const operations = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods)
    .filter(([, operation]) => !isAuditors(operation))
    .map(([method, operation]) => describe(path, method, operation))
)
const isRequired = ([, fields]) => fields.some(({ required }) => required)
const codes = components.schemas.Error.properties.error.properties.code["x-extensible-enum"]
const quoted = (values) => values.map((value) => JSON.stringify(value))

const typescript = () => {
  const type = (schema) => {
    if (schema.$ref) return schema.$ref.split("/").at(-1)
    if (schema.anyOf) return schema.anyOf.map(type).join(" | ")
    if (schema.enum) return quoted(schema.enum).join(" | ")
    // Later versions of the service may add values.
    if (schema["x-extensible-enum"]?.length > 1) return `${quoted(schema["x-extensible-enum"]).join(" | ")} | (string & {})`
    if (schema["x-extensible-enum"]) return quoted(schema["x-extensible-enum"])[0]
    if (schema.type === "array") return `ReadonlyArray<${type(schema.items)}>`
    if (schema.type === "integer") return "number"
    if (schema.type !== "object") return schema.type ?? "unknown"
    const { additionalProperties, properties = {}, required = [] } = schema
    if (additionalProperties) return `Readonly<Record<string, ${type(additionalProperties)}>>`
    const fields = Object.entries(properties).map(
      ([name, field]) => `readonly ${name}${required.includes(name) ? "" : "?"}: ${type(field)}`
    )
    return fields.length === 0 ? "Readonly<Record<string, unknown>>" : `{ ${fields.join("; ")} }`
  }
  const inputs = (operation) =>
    operation.inputs.map((input) => `readonly ${input[0]}${isRequired(input) ? "" : "?"}: ${type(input[2])}`)
  return [
    "// Written from openapi.json by scripts/client-types.mjs. Do not edit.\n",
    `export type ErrorCode = ${quoted(codes).join(" | ")}\n`,
    ...Object.entries(components.schemas).map(([name, schema]) => `export type ${name} = ${type(schema)}\n`),
    "/** Input and result of each operation. A result of `never` is no JSON: use `open`. */",
    "export interface Operations {",
    ...operations.map(
      (operation) =>
        `  readonly ${operation.id}: { readonly input: { ${inputs(operation).join("; ")} }; readonly result: ${operation.result ? type(operation.result) : "never"} }`
    ),
    "}\n",
    'export type Credential = "apiKey" | "either" | "none" | "token"\n',
    "/** Method, path, credential, and whether an Idempotency-Key makes a repetition safe. */",
    "export const operations: { readonly [Id in keyof Operations]: readonly [string, string, Credential, boolean] } = {",
    ...operations.map(
      ({ credential, id, idempotent, method, path }) => `  ${id}: ${JSON.stringify([method, path, credential, idempotent])},`
    ),
    "}"
  ].join("\n")
}

const python = () => {
  const classes = []
  /** Returns the type of a schema. An object becomes a TypedDict of this name. */
  const type = (schema, name) => {
    if (schema.$ref) return `"${schema.$ref.split("/").at(-1)}"`
    if (schema.anyOf) {
      const types = schema.anyOf.map((one, index) => type(one, index === 0 ? name : `${name}${index + 1}`))
      return types.length === 1 ? types[0] : `Union[${types.join(", ")}]`
    }
    if (schema.enum?.every((value) => typeof value === "string")) return `Literal[${quoted(schema.enum).join(", ")}]`
    if (schema.enum) return "Literal[True]"
    if (schema.type === "array") return `List[${type(schema.items, `${name}Item`)}]`
    if (schema.type === "null") return "None"
    if (schema.type !== "object") return { boolean: "bool", integer: "int", number: "float", string: "str" }[schema.type] ?? "Any"
    const { additionalProperties, properties = {}, required = [] } = schema
    if (additionalProperties) return `Dict[str, ${type(additionalProperties, `${name}Value`)}]`
    if (Object.keys(properties).length === 0) return "Dict[str, Any]"
    const fields = Object.entries(properties).map(([field, inner]) => {
      const annotation = type(inner, `${name}${pascal(field.replaceAll(/_(.)/gu, (_, letter) => letter.toUpperCase()))}`)
      return [field, required.includes(field) ? annotation : `NotRequired[${annotation}]`]
    })
    // A keyword of Python cannot be the name of an attribute.
    classes.push(
      "from" in properties
        ? `\n\n${name} = TypedDict("${name}", {${fields.map(([field, annotation]) => `"${field}": ${annotation}`).join(", ")}})`
        : `\n\nclass ${name}(TypedDict):\n${fields.map(([field, annotation]) => `    ${field}: ${annotation}`).join("\n")}`
    )
    return `"${name}"`
  }
  for (const [name, schema] of Object.entries(components.schemas)) {
    const made = type(schema, name)
    if (made !== `"${name}"`) classes.push(`\n\n${name} = ${made}`)
  }
  const methods = operations.flatMap((operation) => {
    const { credential, id, idempotent, inputs, method, path, result } = operation
    const row = [method, path, credential].map((value) => JSON.stringify(value)).join(", ")
    const parameters = inputs
      .toSorted((one, other) => Number(isRequired(other)) - Number(isRequired(one)))
      .map((input) => {
        const annotation = type(input[2], `${pascal(id)}${pascal(input[0])}`)
        return `${input[0]}: ${isRequired(input) ? annotation : `Optional[${annotation}] = None`}`
      })
    const more = inputs.map(([name]) => `${name}=${name}`)
    if (idempotent) more.push("idempotency_key=idempotency_key")
    if (idempotent) parameters.push("idempotency_key: Union[str, None, Literal[False]] = None")
    const returns = result ? type(result, `${pascal(id)}Result`) : "bytes"
    const send = `${result ? "self._json" : "self._bytes"}(${[row, ...more].join(", ")})`
    const name = snake(id).replace(/^_/u, "")
    return `\n    def ${name}(${["self", ...parameters].join(", ")}) -> ${returns}:\n        result: ${returns} = ${send}\n        return result`
  })
  return [
    '"""Written from openapi.json by scripts/client-types.mjs. Do not edit."""',
    "from typing import Any, Dict, List, Literal, NotRequired, Optional, TypedDict, Union",
    "",
    `ErrorCode = Literal[${quoted(codes).join(", ")}]`,
    ...classes,
    "",
    "",
    "class Operations:",
    '    """One method for each operation. `path`, `query` and `body` are as in openapi.json."""',
    "",
    "    def _json(self, method: str, route: str, credential: str, **more: Any) -> Any:",
    "        raise NotImplementedError",
    "",
    "    def _bytes(self, method: str, route: str, credential: str, **more: Any) -> bytes:",
    "        raise NotImplementedError",
    ...methods
  ].join("\n")
}

process.stdout.write(`${process.argv[2] === "python" ? python() : typescript()}\n`)
