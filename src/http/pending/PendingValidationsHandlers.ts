import { Clock, DateTime, Duration, Effect, MutableRef, Option, Redacted } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { companyData } from "#domain/receipts/ConfirmationRules.ts"
import { PendingValidations } from "#domain/pending/PendingValidations.ts"
import type { ListedValidation, ValidationRecord } from "#domain/pending/ValidationReader.ts"
import { longestWait } from "#domain/pending/TaskDelays.ts"
import { ValidationState } from "#domain/validation/ValidationTask.ts"
import { parse } from "#domain/vat/VatId.ts"
import { referenceIn } from "#domain/vat/Verdict.ts"
import { DecodedApi } from "#http/Api.ts"
import { CurrentKey } from "#http/pipeline/Authentication.ts"
import * as DecodeErrors from "#http/pipeline/DecodeErrors.ts"
import * as FailureResponses from "#http/pipeline/FailureResponses.ts"
import { counting, ResponseHints } from "#http/pipeline/ResponseHints.ts"
import { basePath, Site } from "#http/pipeline/SiteSettings.ts"
import * as Cursor from "#http/wire/Cursor.ts"
import * as IdempotencyKeyHeader from "#http/wire/IdempotencyKeyHeader.ts"
import * as Prefer from "#http/wire/Prefer.ts"
import { maxWaitSeconds, type Submission } from "#http/pending/PendingValidationsApi.ts"
import { bodyOf, warningOf } from "#http/validation/ValidationHandlers.ts"

const defaultLimit = 20

/** Creates a function that returns the response with a validation. */
const makeRespond = Effect.map(Site, (site) => {
  const base = basePath(site)
  return Effect.fnUntraced(function* (record: ValidationRecord, status: number, headers: Record<string, string>) {
    const { nextAttemptAt, state } = record
    const waits = state === "pending" ? yield* secondsUntil(nextAttemptAt) : null
    const location = { location: `${base}/v1/validations/${record.validationId}` }
    const more = waits === null ? headers : { ...headers, ...location, "retry-after": String(waits) }
    const warning = record.validation === null ? undefined : warningOf(record.validation)?.headers
    return HttpServerResponse.jsonUnsafe(shown(record), { status, headers: { ...more, ...warning } })
  })
})

/** Converts the body of a submission to a request for a validation. An empty field counts as not supplied. */
const requestOf = ({ company, force_live, max_age, reference = "", requester_vat_id = "", vat_id }: typeof Submission.Type) => ({
  input: vat_id,
  requesterVatId: requester_vat_id === "" ? null : requester_vat_id,
  reference: reference === "" ? null : reference,
  company: companyData({ name: company?.name, street: company?.street, zip: company?.zip, city: company?.city }),
  maxAge: force_live === true ? 0 : (max_age ?? null)
})

export const layer = HttpApiBuilder.group(
  DecodedApi,
  "pendingValidations",
  Effect.fnUntraced(function* (handlers) {
    const { cancel, get, page, referenceHashOf, submit } = yield* PendingValidations
    const cursors = yield* Cursor.make
    const respond = yield* makeRespond

    return handlers.handleAll({
      submit: Effect.fnUntraced(function* ({ headers, payload }) {
        const requestedAt = yield* DateTime.now
        const caller = yield* CurrentKey
        const { headers: sent } = yield* HttpServerRequest.HttpServerRequest
        const header = headers["idempotency-key"]
        const idempotencyKey = header === undefined ? Option.none() : IdempotencyKeyHeader.parse(header)
        if (header !== undefined && Option.isNone(idempotencyKey))
          return yield* DecodeErrors.respond(IdempotencyKeyHeader.problem())
        const preferred = Prefer.parse(headers.prefer, maxWaitSeconds)
        if (Option.isNone(preferred)) return yield* DecodeErrors.respond(Prefer.problem(maxWaitSeconds))
        const preferences = preferred.value
        const mayWait = !preferences.isAsync || Duration.isPositive(preferences.wait)
        const key = Redacted.make(sent["x-api-key"] ?? "")
        const { isReplayed, record } = yield* counting({ _tag: "Key", key }, (call) =>
          submit({
            caller,
            request: { ...requestOf(payload), ...call },
            requestedAt,
            expiresIn: payload.expires_in === undefined ? null : Duration.seconds(payload.expires_in),
            idempotencyKey: Option.getOrNull(idempotencyKey),
            wait: preferences.isAsync ? preferences.wait : null,
            matchFormat: null
          })
        )
        if (mayWait && record.validation?.served !== "cache") MutableRef.set((yield* ResponseHints).isLive, true)
        return yield* respond(record, record.state === "pending" ? 202 : 200, {
          ...(preferences.isAsync ? Prefer.applied(preferences) : {}),
          ...IdempotencyKeyHeader.replayed(isReplayed)
        })
      }, FailureResponses.respond),
      get: Effect.fnUntraced(function* ({ params, query }) {
        const { keyId } = yield* CurrentKey
        const record = yield* get(keyId, params.validation_id, Duration.seconds(query.wait ?? 0))
        return yield* respond(record, 200, {})
      }, FailureResponses.respond),
      list: Effect.fnUntraced(function* ({ query }) {
        const { keyId } = yield* CurrentKey
        const { cursor, limit = defaultLimit, reference, status } = query
        const vatId = query.vat_id === undefined ? null : (yield* Effect.fromResult(parse(query.vat_id))).value
        const referenceHash = reference === undefined ? null : referenceHashOf(keyId, reference)
        const list = `validations/${keyId}/${status ?? ""}/${vatId ?? ""}/${referenceHash ?? ""}`
        const before = cursor === undefined ? null : yield* cursors.decode(list, cursor)
        const states = status === undefined ? ValidationState.literals : [status]
        const { next, validations } = yield* page({ keyId, states, vatId, referenceHash, before, limit })
        return {
          data: validations.map((one) => ({
            ...openFields(one),
            status: one.state,
            accepted_at: one.acceptedAt,
            expires_at: one.expiresAt,
            next_attempt_at: one.state === "pending" ? one.nextAttemptAt : null
          })),
          next_cursor: next === null ? null : cursors.encode(list, next)
        }
      }, FailureResponses.respond),
      cancel: Effect.fnUntraced(function* ({ params }) {
        return yield* respond(yield* cancel(yield* CurrentKey, params.validation_id), 200, {})
      }, FailureResponses.respond)
    })
  })
)

/**
 * Maximum of Retry-After, in seconds. A validation can wait for the quota of the next month, but a change of the plan lets it continue
 * earlier. Clients should therefore ask again before the next month.
 */
const longestRetryAfter = Duration.toSeconds(longestWait)

const secondsUntil = (moment: DateTime.Utc) =>
  Effect.map(Clock.currentTimeMillis, (nowMs) =>
    Math.min(longestRetryAfter, Math.max(1, Math.ceil((DateTime.toEpochMillis(moment) - nowMs) / 1000)))
  )

const openFields = ({ attempts, lastFailure, reference, validationId, vatId }: ListedValidation) => ({
  validation_id: validationId,
  vat_id: vatId,
  ...referenceIn(reference),
  attempts,
  last_failure: lastFailure
})

/** Returns the JSON of a validation. Only a final validation has `valid`. */
const shown = (record: ValidationRecord) => {
  const { acceptedAt, expiresAt, nextAttemptAt, reason, reference, requestId, state, validation, validationId } = record
  const accepted = DateTime.formatIso(acceptedAt)
  if (validation !== null) {
    const body = bodyOf(validation, "words", requestId, accepted)
    return { validation_id: validationId, status: state, ...referenceIn(reference), ...body }
  }
  const fields = { ...openFields(record), accepted_at: accepted, expires_at: DateTime.formatIso(expiresAt) }
  return state === "pending"
    ? { ...fields, status: state, next_attempt_at: DateTime.formatIso(nextAttemptAt) }
    : { ...fields, status: state, reason }
}
