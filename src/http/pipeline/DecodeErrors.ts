/** Responses to requests that do not decode: each invalid field with the reason (rules 11, 45). */
import { Effect, Option, type Schema, SchemaIssue } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiMiddleware } from "effect/http-api"
import { likelyName } from "#domain/kernel/LikelyName.ts"
import { type FieldError, toResponse } from "#http/pipeline/Errors.ts"

export class DecodeErrors extends HttpApiMiddleware.Service<DecodeErrors>()("vatproof/http/pipeline/DecodeErrors") {}

const formatIssues = SchemaIssue.makeFormatterStandardSchemaV1()

/** Maximum number of fields listed. */
const maxFields = 20

export const layer = HttpApiMiddleware.layerSchemaErrorTransform(DecodeErrors, (error) => {
  // A response that does not encode is a defect of ours.
  if (error.kind === "Body" || error.kind === "ResponseHeaders") return Effect.die(error)
  return respond(fieldErrors(error.kind.toLowerCase(), error.cause))
})

/** Returns the response for these invalid fields. */
export const respond = (details: ReadonlyArray<FieldError>) => {
  const message = details.map(({ field, message }) => `${field}: ${message}`).join("; ")
  return toResponse({ code: "VALIDATION_ERROR", message, details })
}

/** Finds parameters that are probably misspelled: a supplied field must not be ignored silently (rule 11). */
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

/** Returns the invalid fields of a decoding error; `kind` names the part of the request if a field has no name. */
export const fieldErrors = (kind: string, cause: Schema.SchemaError): ReadonlyArray<FieldError> =>
  formatIssues(cause.issue)
    .issues.slice(0, maxFields)
    .map((issue) => {
      const path = (issue.path ?? []).map((step) => String(typeof step === "object" ? step.key : step)).join(".")
      return { field: path === "" ? kind : path, message: issue.message }
    })
