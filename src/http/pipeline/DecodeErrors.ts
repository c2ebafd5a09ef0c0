/**
 * Creates the response to a request that does not match its schema. The response lists each invalid field with the reason (rules 11,
 * 45).
 */
import { Effect, Layer, Option, type Schema, SchemaIssue } from "effect"
import { HttpServerRequest } from "effect/http"
import { type HttpApiEndpoint, HttpApiMiddleware } from "effect/http-api"
import { likelyName } from "#domain/text/LikelyName.ts"
import { type FieldError, toResponse } from "#http/pipeline/Errors.ts"

export class DecodeErrors extends HttpApiMiddleware.Service<DecodeErrors>()("vatproof/http/pipeline/DecodeErrors") {}

const formatIssues = SchemaIssue.makeFormatterStandardSchemaV1()

/** Maximum number of invalid fields that an error lists. */
const maxFields = 20

/** Returns the names of the query parameters of an endpoint. */
const parametersOf = ({ query }: HttpApiEndpoint.Top) =>
  query?.ast._tag === "Objects" ? query.ast.propertySignatures.map(({ name }) => String(name)) : []

const decoding = HttpApiMiddleware.layerSchemaErrorTransform(DecodeErrors, (error) => {
  // A response that does not match its schema is a defect of the service.
  if (error.kind === "Body" || error.kind === "ResponseHeaders") return Effect.die(error)
  return respond(fieldErrors(error.kind.toLowerCase(), error.cause))
})

/** Checks the names of the query parameters before they are decoded. */
export const layer = Layer.effect(
  DecodeErrors,
  Effect.map(DecodeErrors, (decode) =>
    Effect.fnUntraced(function* (httpEffect, options) {
      const wrong = misspelled(yield* HttpServerRequest.ParsedSearchParams, parametersOf(options.endpoint))
      return wrong.length > 0 ? yield* respond(wrong) : yield* decode(httpEffect, options)
    })
  )
).pipe(Layer.provide(decoding))

/** Returns the 400 response that lists these invalid fields. */
export const respond = (details: ReadonlyArray<FieldError>) => {
  const message = details.map(({ field, message }) => `${field}: ${message}`).join("; ")
  return toResponse({ code: "VALIDATION_ERROR", message, details })
}

/** Returns an error for each unknown query parameter that resembles a known one, because the client has probably misspelled it (rule 11). */
export const misspelled = (
  search: HttpServerRequest.ParsedSearchParams["Service"],
  known: ReadonlyArray<string>
): ReadonlyArray<FieldError> =>
  Object.keys(search).flatMap((name) =>
    Option.match(likelyName(name, known), {
      onNone: () => [],
      onSome: (likely) => [{ field: name, message: `Unknown parameter; did you mean ${likely}?` }]
    })
  )

/**
 * Returns the path and the message of each invalid field. An error without a path concerns the whole part of the request: `kind`, such
 * as `payload`, names that part.
 */
export const fieldErrors = (kind: string, cause: Schema.SchemaError): ReadonlyArray<FieldError> =>
  formatIssues(cause.issue)
    .issues.slice(0, maxFields)
    .map((issue) => {
      const path = (issue.path ?? []).map((step) => String(typeof step === "object" ? step.key : step)).join(".")
      return { field: path === "" ? kind : path, message: issue.message }
    })
