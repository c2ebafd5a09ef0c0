/** What a request that does not decode is answered with: each field that is wrong, and why (rules 11, 45). */
import { Effect, Option, type Schema, SchemaIssue } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiMiddleware } from "effect/http-api"
import { likelyName } from "#domain/kernel/LikelyName.ts"
import { type FieldError, toResponse } from "#http/pipeline/Problem.ts"

export class DecodeErrors extends HttpApiMiddleware.Service<DecodeErrors>()("vatproof/http/pipeline/DecodeErrors") {}

const formatIssues = SchemaIssue.makeFormatterStandardSchemaV1()

/** At most this many fields are listed. */
const maxFields = 20

export const layer = HttpApiMiddleware.layerSchemaErrorTransform(DecodeErrors, (error) => {
  // A response that does not encode is our own mistake.
  if (error.kind === "Body" || error.kind === "ResponseHeaders") return Effect.die(error)
  return respond(fieldErrors(error.kind.toLowerCase(), error.cause))
})

/** The response to a request with these fields wrong. */
export const respond = (details: ReadonlyArray<FieldError>) => {
  const message = details.map(({ field, message }) => `${field}: ${message}`).join("; ")
  return toResponse({ code: "VALIDATION_ERROR", message, details })
}

/** The parameters that are probably misspelled: a supplied field must not be ignored silently (rule 11). */
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

/** The wrong fields of what does not decode; `kind` names the part of the request, where a field has no name. */
export const fieldErrors = (kind: string, cause: Schema.SchemaError): ReadonlyArray<FieldError> =>
  formatIssues(cause.issue)
    .issues.slice(0, maxFields)
    .map((issue) => {
      const path = (issue.path ?? []).map((step) => String(typeof step === "object" ? step.key : step)).join(".")
      return { field: path === "" ? kind : path, message: issue.message }
    })
