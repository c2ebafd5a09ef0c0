/**
 * Serves GET /v1/validate/{vat_id}. The route is added to the router directly, because the decoding by `HttpApiBuilder` costs more CPU
 * time than the validation.
 */
import { Clock, Context, DateTime, Effect, MutableRef, Option, Result, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { ApiKeyRequired } from "#domain/receipts/ConfirmationRules.ts"
import type { Call } from "#domain/callers/Admission.ts"
import type { Credential } from "#domain/callers/Identity.ts"
import { letterOf } from "#domain/receipts/Receipt.ts"
import { RequestContext } from "#domain/kernel/RequestContext.ts"
import { PendingValidations } from "#domain/pending/PendingValidations.ts"
import { ValidateVatId } from "#domain/validation/ValidateVatId.ts"
import type { Confirmation, Validation, ValidationRequest } from "#domain/validation/ValidationQuestion.ts"
import { makeCredentialOf, makeKeyCallerOf } from "#http/pipeline/Authentication.ts"
import * as FailureResponses from "#http/pipeline/FailureResponses.ts"
import * as Errors from "#http/pipeline/Errors.ts"
import * as DecodeErrors from "#http/pipeline/DecodeErrors.ts"
import { counting, ResponseHints } from "#http/pipeline/ResponseHints.ts"
import * as IdempotencyKeyHeader from "#http/wire/IdempotencyKeyHeader.ts"
import { companyOf, validatePath, ValidationQuery, type ValidationResult } from "#http/validation/ValidationApi.ts"

/** The warning of a stale answer (RFC 7234, 5.5.1). The service sends a stale answer from the cache if no source is available. */
const staleHeaders = { headers: { warning: '110 - "Response is Stale"' } }
/** The warning of a charged confirmation that compared nothing (rule 29). */
const uncomparedHeaders = {
  headers: { warning: '199 - "Nothing was compared: the BZSt compares only with company_name and company_city"' }
}

const decodeQuery = Schema.decodeUnknownResult(ValidationQuery, { errors: "all" })
const noQuery: typeof ValidationQuery.Type = {}

/** Returns the decoded query, or a failure with the invalid fields. */
const queryOf = (search: HttpServerRequest.ParsedSearchParams["Service"]) => {
  if (Object.keys(search).length === 0) return Result.succeed(noQuery)
  const misspelled = DecodeErrors.misspelled(search, Object.keys(ValidationQuery.fields))
  if (misspelled.length > 0) return Result.fail(misspelled)
  return Result.mapError(decodeQuery(search), (error) => DecodeErrors.fieldErrors("query", error))
}

/** What a client asks, without its call. */
type Asked = Omit<ValidationRequest, keyof Call>

/**
 * Creates the handler of requests with an Idempotency-Key (rule 86). The id of the validation is computed from that key. Every response is
 * built from the events of the validation, so repeated requests get equal responses.
 */
const makeAnswerOnce = Effect.gen(function* () {
  const keyCallerOf = yield* makeKeyCallerOf
  const { countCall } = yield* ValidateVatId
  const { submit } = yield* PendingValidations

  return Effect.fnUntraced(function* (header: string, credential: Credential, request: Asked, matchFormat: "words" | "letters") {
    const requestedAt = yield* DateTime.now
    const idempotencyKey = IdempotencyKeyHeader.parse(header)
    if (credential._tag !== "Key" || Option.isNone(idempotencyKey)) {
      yield* counting(credential, countCall)
      return Option.isNone(idempotencyKey)
        ? yield* DecodeErrors.respond(IdempotencyKeyHeader.problem())
        : yield* new ApiKeyRequired({ message: "Idempotency-Key needs an API key: get a free one from POST /v1/register" })
    }
    const caller = yield* keyCallerOf(yield* HttpServerRequest.HttpServerRequest)
    const { isReplayed, record } = yield* counting(credential, (call) =>
      submit({
        caller,
        request: { ...request, ...call },
        requestedAt,
        expiresIn: null,
        idempotencyKey: idempotencyKey.value,
        wait: null,
        matchFormat
      })
    )
    const { acceptedAt, requestId, validation } = record
    if (validation === null) return yield* Effect.die("A synchronous validation ended without an answer (a defect)")
    if (!isReplayed && validation.served === "live") MutableRef.set((yield* ResponseHints).isLive, true)
    const body = bodyOf(validation, matchFormat, requestId, DateTime.formatIso(acceptedAt))
    const headers = { ...warningOf(validation)?.headers, ...IdempotencyKeyHeader.replayed(isReplayed) }
    return HttpServerResponse.jsonUnsafe(body, { headers })
  }, FailureResponses.respond)
})

export const layer = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const { countCall, validate } = yield* ValidateVatId
    const credentialOf = yield* makeCredentialOf
    const answerOnce = yield* makeAnswerOnce
    const clock = yield* Clock.Clock

    const answer = (context: Context.Context<HttpRouter.Provided>, credential: Credential) => {
      const requestedAt = DateTime.formatIso(DateTime.makeUnsafe(clock.currentTimeMillisUnsafe()))
      const { vat_id: input = "" } = Context.get(context, HttpRouter.RouteContext).params
      const query = queryOf(Context.get(context, HttpServerRequest.ParsedSearchParams))
      const { isLive } = Context.get(context, ResponseHints)
      if (Result.isFailure(query)) {
        return Effect.matchEffect(counting(credential, countCall), {
          onSuccess: () => DecodeErrors.respond(query.failure),
          onFailure: FailureResponses.failureResponse
        })
      }
      const { force_live, match_format = "words", max_age, reference = "", requester_vat_id = "" } = query.success
      const request = {
        input,
        requesterVatId: requester_vat_id === "" ? null : requester_vat_id,
        reference: reference === "" ? null : reference,
        company: companyOf(query.success),
        maxAge: force_live === "true" || force_live === "1" ? 0 : (max_age ?? null)
      }
      const idempotencyKey = Context.get(context, HttpServerRequest.HttpServerRequest).headers["idempotency-key"]
      if (idempotencyKey !== undefined) return answerOnce(idempotencyKey, credential, request, match_format)
      const validated = counting(credential, (call) => validate({ ...request, ...call }))
      return Effect.matchEffect(validated, {
        onSuccess: (validation) => {
          if (validation.served === "live") MutableRef.set(isLive, true)
          const { requestId } = Context.get(context, RequestContext)
          const body = bodyOf(validation, match_format, requestId, requestedAt)
          return Effect.succeed(HttpServerResponse.jsonUnsafe(body, warningOf(validation)))
        },
        onFailure: FailureResponses.failureResponse
      })
    }

    yield* router.add(
      "GET",
      validatePath,
      Effect.contextWith((context: Context.Context<HttpRouter.Provided>) => {
        const request = Context.get(context, HttpServerRequest.HttpServerRequest)
        // HEAD is rejected: a HEAD must be safe to repeat, but a validation is charged (rule 13).
        if (request.method === "HEAD") return Errors.methodNotAllowed("HEAD", ["GET"])
        const credential = credentialOf(request)
        return Result.isSuccess(credential)
          ? answer(context, credential.success)
          : FailureResponses.failureResponse(credential.failure)
      })
    )
  })
)

export const warningOf = ({ confirmation, served }: Validation) => {
  if (served === "stale") return staleHeaders
  if (confirmation === null) return undefined
  const { company_city, company_name } = confirmation.receipt.input
  return company_name === "" || company_city === "" ? uncomparedHeaders : undefined
}

/**
 * Caches formatted times by DateTime object, because formatting takes microseconds. All requests that get the same cached answer share
 * its DateTime object.
 */
const timestamps = new WeakMap<DateTime.Utc, string>()

const timestampOf = (time: DateTime.Utc) => {
  const known = timestamps.get(time)
  if (known !== undefined) return known
  const text = DateTime.formatIso(time)
  timestamps.set(time, text)
  return text
}

/** Returns the JSON of a validation, as `ValidationResult` describes it. */
export const bodyOf = (
  { answer, confirmation, consultationNumber, served, vatId }: Validation,
  format: "words" | "letters",
  requestId: string,
  requestedAt: string
): typeof ValidationResult.Encoded => ({
  valid: answer.valid,
  vat_id: vatId.value,
  country_code: vatId.memberState.alpha2,
  vat_number: vatId.number,
  company_name: answer.company_name,
  company_address: answer.company_address,
  source: served === "live" ? answer.source : "cache",
  source_timestamp: timestampOf(answer.answered_at),
  cache: served !== "live",
  ...(served === "stale" ? { stale: true as const } : undefined),
  qualified_confirmation: confirmation === null ? null : confirmationOf(confirmation, format),
  consultation_number: consultationNumber,
  request_id: requestId,
  requested_at: requestedAt
})

/** Returns the JSON of a confirmation, in words or in letters (rule 28). */
const confirmationOf = ({ receipt, requestId }: Confirmation, format: "words" | "letters") => {
  const { issued_at, receipt_id, source } = receipt
  const { city_match, name_match, street_match, zip_match } = receipt.result
  const issued = { receipt_id, issued_at: DateTime.formatIso(issued_at), source }
  if (format === "words") return { name_match, street_match, zip_match, city_match, ...issued }
  return {
    name_match: letterOf(name_match),
    street_match: letterOf(street_match),
    zip_match: letterOf(zip_match),
    city_match: letterOf(city_match),
    confirmation_number: requestId,
    ...issued
  }
}
