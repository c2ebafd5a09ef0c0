/**
 * Finishes the OpenAPI document. The library makes it of the endpoints and their schemas; here stands what these cannot say, in small steps,
 * so that a program which generates a client finds all of it.
 */
import { Predicate, Record as Rec } from "effect"
import type { OpenApi } from "effect/http-api"
import { MatchLetter, MatchWord } from "#domain/receipts/Receipt.ts"
import { meaningsOf } from "#http/openapi/ErrorMeanings.ts"
import { hasEntityTag, headerDescriptions, headersFor } from "#http/openapi/HeaderDescriptions.ts"
import { errorExamples, errorExamplesIn, requestExamples, responseExamples } from "#http/openapi/OpenApiExamples.ts"
import { tilePaths } from "#http/openapi/TilePaths.ts"

/** A part of the document. */
interface Part {
  readonly [key: string]: unknown
}

type Operation = OpenApi.OpenAPISpecOperation
type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>

/** Annotates the whole interface with this (OpenApi.Transform). */
export const openApiDocument: OpenApi.Transform["Service"] = ({ components, info, paths, ...rest }) =>
  inAllParts(
    {
      ...rest,
      info: { ...info, ...terms },
      paths: finishedPaths(paths),
      components: {
        ...components,
        // What a request may say is inline at its operation: components are what responses say.
        schemas: inAllParts(components.schemas, withOpenEnum),
        headers: headerDescriptions,
        examples: errorExamples,
        securitySchemes: finishedSecuritySchemes(components.securitySchemes)
      }
    },
    finishedSchema
  )

/** Each service has an operator of its own, whose address the configuration knows. */
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

/** OpenAPI ignores a parameter of this name: it knows the media types by the responses. */
const isAccept = (parameter: OpenApi.OpenAPISpecParameter) => parameter.in === "header" && parameter.name === "accept"

/** Many tools read descriptions and examples of parameters, and not those of their schemas. */
const finishedParameter = ({ name, schema, ...rest }: OpenApi.OpenAPISpecParameter) => {
  const { description, examples, ...bare }: Part = { ...schema }
  const [example]: ReadonlyArray<unknown> = Array.isArray(examples) ? examples : []
  const told = description === undefined ? {} : { description }
  return { name, ...rest, ...told, schema: bare, ...(example === undefined ? {} : { example }) }
}

/** No body is decoded as null: where that is allowed the body is optional, and what it is if there is one is the other alternative. */
const finishedBody = (operationId: string, { content }: OpenApi.OpenAPISpecRequestBody) => {
  const schema = content["application/json"]?.schema
  const alternatives: ReadonlyArray<Part> = Array.isArray(schema?.anyOf) ? schema.anyOf : []
  const [only] = alternatives.filter(({ type }) => type !== "null")
  const isOptional = alternatives.some(({ type }) => type === "null")
  const examples = requestExamples(operationId)
  const shown = Rec.map(content, ({ schema }, mediaType) => ({
    schema: isOptional && mediaType === "application/json" ? only : schema,
    ...examples
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

/** Who gives out what a scheme asks for. */
const schemeDescriptions: Readonly<Record<string, Part>> = {
  apiKey: { description: "An API key, svc_live_…, from POST /v1/register or POST /v1/auth/api-keys" },
  bearer: { description: "The token of POST /v1/auth/login, valid for 24 hours", bearerFormat: "JWT" }
}

/** Names of schemes are compared without regard to case, but some generators know only the lower one. */
const finishedSecuritySchemes = (schemes: Readonly<Record<string, Part>>) =>
  Rec.map(schemes, ({ scheme, ...rest }, name) => ({
    ...rest,
    ...(typeof scheme === "string" ? { scheme: scheme.toLowerCase() } : {}),
    ...schemeDescriptions[name]
  }))

/** Applies a step to a part and to all parts in it, the inner ones first. */
const inAllParts = (part: Part, step: (part: Part) => Part): Part => {
  const within = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(within)
    return Predicate.isObject(value) ? step(Rec.map({ ...value }, within)) : value
  }
  return Rec.map(part, within)
}

const finishedSchema = (part: Part): Part => withoutPattern(withInt64(withoutClosing(withoutLoneAllOf(part))))

/** The library writes annotations of some checks beside the rest. */
const withoutLoneAllOf = (part: Part): Part => {
  const { allOf, ...rest } = part
  const [member, second]: ReadonlyArray<Part | undefined> = Array.isArray(allOf) ? allOf : []
  return member === undefined || second !== undefined ? part : { ...rest, ...member }
}

/** Fields of a request that nobody knows are ignored, like its query (rule 11), and a response may get more of them. */
const withoutClosing = (part: Part): Part => {
  const { additionalProperties, ...rest } = part
  return additionalProperties === false ? rest : part
}

/** Without bounds an integer gets those of JavaScript. All of this interface are counts, positions and lengths of time: none is negative. */
const withInt64 = (part: Part): Part => {
  const { maximum, minimum, ...rest } = part
  if (part["type"] !== "integer" || maximum !== Number.MAX_SAFE_INTEGER) return part
  return { ...rest, format: "int64", minimum: minimum === Number.MIN_SAFE_INTEGER ? 0 : minimum }
}

/** Words and letters of a comparison are all there will be (rule 28). Other values may grow, which an `enum` would not allow. */
const closedValues = new Set<unknown>([...MatchWord.literals, ...MatchLetter.literals])

const withOpenEnum = (part: Part): Part => {
  const { enum: values, ...rest } = part
  const isOpen = part["type"] === "string" && Array.isArray(values) && !values.every((value) => closedValues.has(value))
  return isOpen ? { ...rest, "x-extensible-enum": values } : part
}

/** A format says in a word what the pattern spells out. */
const withoutPattern = (part: Part): Part => {
  const { pattern, ...rest } = part
  return typeof pattern === "string" && typeof part["format"] === "string" ? rest : part
}
