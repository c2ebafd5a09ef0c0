/**
 * Completes the OpenAPI document that the library generates from endpoints and schemas. Each step adapts the document to the tools that
 * generate clients from it.
 */
import { Predicate, Record as Rec } from "effect"
import type { OpenApi } from "effect/http-api"
import { MatchLetter, MatchWord } from "#domain/receipts/Receipt.ts"
import { meaningsOf } from "#http/openapi/ErrorMeanings.ts"
import { hasEntityTag, headerDescriptions, headersFor } from "#http/openapi/HeaderDescriptions.ts"
import { errorExamples, errorExamplesIn, requestExamples, responseExamples } from "#http/openapi/OpenApiExamples.ts"
import { tilePaths } from "#http/openapi/TilePaths.ts"

/** An object at any depth of the document. */
interface Part {
  readonly [key: string]: unknown
}

type Operation = OpenApi.OpenAPISpecOperation
type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>

/** Returns the completed document. It is the `transform` of the interface, which the library calls with the generated document. */
export const openApiDocument: OpenApi.Transform["Service"] = ({ components, info, paths, ...rest }) =>
  inAllParts(
    {
      ...rest,
      info: { ...info, ...terms },
      paths: finishedPaths(paths),
      components: {
        ...components,
        // `components.schemas` has only the schemas of responses, and `withOpenEnum` lets their enums get new values. The schemas of
        // requests are inline in their operations, so the enums of requests stay closed.
        schemas: inAllParts(components.schemas, withOpenEnum),
        headers: headerDescriptions,
        examples: errorExamples,
        securitySchemes: finishedSecuritySchemes(components.securitySchemes)
      }
    },
    finishedSchema
  )

/** The contact in the document. `Documents` adds the address of the operator from the configuration. */
export const operator = { name: "The operator of this service" }

const terms = {
  contact: operator,
  license: { name: "Apache License 2.0", identifier: "Apache-2.0" }
}

const finishedPaths = (paths: Paths) => Rec.map(tilePaths(paths), (operations) => Rec.map(operations, finishedOperation))

const finishedOperation = (operation: Operation) => {
  const { parameters, requestBody, responses, ...rest } = operation
  return {
    ...rest,
    parameters: parameters.filter((parameter) => !isAccept(parameter)).map(finishedParameter),
    ...(requestBody === undefined ? {} : { requestBody: finishedBody(operation.operationId, requestBody) }),
    responses: {
      ...Rec.map(responses, (response, status) => finishedResponse(operation, Number(status), response)),
      ...(hasEntityTag(operation)
        ? { 304: { description: "Not modified: the client's copy is current", headers: headersFor(operation, 304), content: {} } }
        : {})
    }
  }
}

/**
 * Returns true for a parameter that is the header Accept. OpenAPI ignores this parameter: it takes the media types from the
 * descriptions of the responses.
 */
const isAccept = (parameter: OpenApi.OpenAPISpecParameter) => parameter.in === "header" && parameter.name === "accept"

/** Moves description and example from a parameter's schema to the parameter, because many tools read them only there. */
const finishedParameter = ({ name, schema, ...rest }: OpenApi.OpenAPISpecParameter) => {
  const { description, examples, ...bare }: Part = { ...schema }
  const [example]: ReadonlyArray<unknown> = Array.isArray(examples) ? examples : []
  const described = description === undefined ? {} : { description }
  return { name, ...rest, ...described, schema: bare, ...(example === undefined ? {} : { example }) }
}

/**
 * Completes the description of a request body. The library decodes a missing body as null, so a body is optional if its schema allows
 * null. For an optional body the document shows the schema without null.
 */
const finishedBody = (operationId: string, { content }: OpenApi.OpenAPISpecRequestBody) => {
  const schema = content["application/json"]?.schema
  const alternatives: ReadonlyArray<Part> = Array.isArray(schema?.anyOf) ? schema.anyOf : []
  const [only] = alternatives.filter(({ type }) => type !== "null")
  const isOptional = alternatives.some(({ type }) => type === "null")
  const shown = Rec.map(content, ({ schema }, mediaType) => ({
    schema: isOptional && mediaType === "application/json" ? only : schema,
    ...requestExamples(operationId, mediaType)
  }))
  return { content: shown, required: !isOptional }
}

const finishedResponse = (operation: Operation, status: number, { content = {}, description }: OpenApi.OpenApiSpecResponse) => {
  const headers = headersFor(operation, status)
  if (status < 400) {
    const shown = Rec.map(content, (body, mediaType) => ({
      ...body,
      ...responseExamples(operation.operationId, status, mediaType)
    }))
    return { description: description.replaceAll(" | ", ". "), headers, content: shown }
  }
  const error = { schema: { $ref: "#/components/schemas/Error" }, ...errorExamplesIn(description) }
  return { description: meaningsOf(description), headers, content: { ...content, "application/json": error } }
}

/** Descriptions of the security schemes, which say where a caller gets the credential. */
const schemeDescriptions: Readonly<Record<string, Part>> = {
  apiKey: { description: "An API key (svc_live_…) from POST /v1/register or POST /v1/auth/api-keys" },
  bearer: { description: "The token of POST /v1/auth/login, valid for 24 hours", bearerFormat: "JWT" }
}

/**
 * Completes the security schemes, and writes the names of HTTP schemes in lower case (`bearer`). The names are case-insensitive, but
 * some generators know only lower case.
 */
const finishedSecuritySchemes = (schemes: Readonly<Record<string, Part>>) =>
  Rec.map(schemes, ({ scheme, ...rest }, name) => ({
    ...rest,
    ...(typeof scheme === "string" ? { scheme: scheme.toLowerCase() } : {}),
    ...schemeDescriptions[name]
  }))

/** Applies `step` to all objects within a part of the document, inner objects first. */
const inAllParts = (part: Part, step: (part: Part) => Part): Part => {
  const within = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(within)
    return Predicate.isObject(value) ? step(Rec.map({ ...value }, within)) : value
  }
  return Rec.map(part, within)
}

const finishedSchema = (part: Part): Part => withoutPattern(withInt64(withoutClosing(withoutLoneAllOf(part))))

/** Merges an `allOf` with a single member into its parent. The library writes annotations as such an `allOf`. */
const withoutLoneAllOf = (part: Part): Part => {
  const { allOf, ...rest } = part
  const [member, second]: ReadonlyArray<Part | undefined> = Array.isArray(allOf) ? allOf : []
  return member === undefined || second !== undefined ? part : { ...rest, ...member }
}

/**
 * Removes `additionalProperties: false`, because later versions can add fields to responses, and because most endpoints ignore unknown
 * fields of a request.
 */
const withoutClosing = (part: Part): Part => {
  const { additionalProperties, ...rest } = part
  return additionalProperties === false ? rest : part
}

/**
 * Replaces the bounds of JavaScript's integers, which the library writes by default, by the format int64 and a minimum of 0. All integers of
 * the interface are counts, positions and durations, so none is negative.
 */
const withInt64 = (part: Part): Part => {
  const { maximum, minimum, ...rest } = part
  if (part["type"] !== "integer" || maximum !== Number.MAX_SAFE_INTEGER) return part
  return { ...rest, format: "int64", minimum: minimum === Number.MIN_SAFE_INTEGER ? 0 : minimum }
}

/** The results of a company-data comparison, as words and letters (rule 28). Their enums never get new values. */
const closedValues = new Set<unknown>([...MatchWord.literals, ...MatchLetter.literals])

/**
 * Writes `x-extensible-enum` in place of `enum` where later versions can add values. Generated clients would reject a value that is not
 * in an `enum`.
 */
const withOpenEnum = (part: Part): Part => {
  const { enum: values, ...rest } = part
  const isOpen = part["type"] === "string" && Array.isArray(values) && !values.every((value) => closedValues.has(value))
  return isOpen ? { ...rest, "x-extensible-enum": values } : part
}

/** Removes the pattern of a string that has a format. */
const withoutPattern = (part: Part): Part => {
  const { pattern, ...rest } = part
  return typeof pattern === "string" && typeof part["format"] === "string" ? rest : part
}
