/** The main use case: is this VAT ID valid today, on whose word, and is that recorded? (INTERFACE 4.3, DECISIONS 9, 19, 20, 37) */
import { Context, DateTime, Duration, Effect, Layer, Option, Result } from "effect"
import { AnswerCache, type Freshness, isFresh, isServableStale, latestKey, type StoredAnswer } from "#domain/AnswerCache.ts"
import type { Caller } from "#domain/Caller.ts"
import {
  admitConfirmation,
  ApiKeyRequired,
  type CompanyData,
  type ConfirmationCountries,
  InvalidRequester
} from "#domain/Confirmation.ts"
import { type ConfirmationRequest, ConfirmVatId } from "#domain/ConfirmVatId.ts"
import type { Receipt } from "#domain/Receipt.ts"
import { Metering, quotaExceeded } from "#domain/Metering.ts"
import { RateLimits } from "#domain/RateLimits.ts"
import { Sources, SourcesUnavailable } from "#domain/Sources.ts"
import type { Usage } from "#domain/Usage.ts"
import * as ValidationMetrics from "#domain/ValidationMetrics.ts"
import * as VatIds from "#domain/VatId.ts"
import type { Answer, Attempt } from "#domain/Verdict.ts"
import { VatIdVerificationFailed, VatIdVerified } from "#domain/Verification.ts"

/** `input` is the VAT ID as the caller typed it. */
export interface ValidationRequest {
  readonly caller: Caller
  readonly input: string
  readonly requesterVatId: string | null
  readonly company: CompanyData | null
  readonly forceLive: boolean
}

/** `served` tells whether `answer` was just given by the source, is a fresh older one, or a stale one because every source is down. */
export interface Validation {
  readonly vatId: VatIds.VatId
  readonly answer: Answer
  /** Where the log holds the answer. */
  readonly position: number
  readonly served: "live" | "cache" | "stale"
  readonly usage: Usage
  /** The receipt of a qualified confirmation, where one was asked for. */
  readonly confirmation: Confirmation | null
}

/** `requestId` is the BZSt's own number of the check. */
export interface Confirmation {
  readonly receipt: Receipt
  readonly requestId: string | null
}

/** How long answers may be served, and whose VAT IDs the BZSt is asked to confirm. */
export interface ValidationRules {
  readonly freshness: Freshness
  readonly countries: ConfirmationCountries
}

/** Uncounted outages per VAT ID and caller in a rolling hour (INTERFACE 8, "abuse cap"). */
const uncountedOutages = { places: 3, window: Duration.hours(1) }

/** How a validation is kept: each outcome is one event, and what it costs. */
const makeRecords = Effect.gen(function* () {
  const metering = yield* Metering
  const rateLimits = yield* RateLimits

  const record = Effect.fnUntraced(function* (
    asked: Question,
    found: { answer: Answer; served: Validation["served"]; position: number | null; attempts: ReadonlyArray<Attempt> }
  ) {
    const { answer, attempts, position, served } = found
    const event = VatIdVerified.make({
      ...factsOf(asked),
      valid: answer.valid,
      source: answer.source,
      answered_at: answer.answered_at,
      served,
      answer: served === "live" ? answer : null,
      answer_position: position,
      attempts
    })
    const latestOf = served === "live" ? latestKey(asked.vatId) : null
    const recorded = yield* metering.record({ caller: asked.caller, event, units: 1, latestOf })
    const { usage } = recorded
    return {
      vatId: asked.vatId,
      answer,
      position: position ?? recorded.position,
      served,
      usage,
      confirmation: null
    } satisfies Validation
  })

  const repeat = (asked: Question, stored: StoredAnswer, served: "cache" | "stale", attempts: ReadonlyArray<Attempt>) =>
    record(asked, { answer: { ...stored.answer, consultation_number: null }, served, position: stored.position, attempts })

  /** An outage costs nothing the first times; who keeps asking the same is charged all the same. */
  const recordOutage = Effect.fnUntraced(function* (asked: Question, outage: SourcesUnavailable) {
    const { places, window } = uncountedOutages
    const free = yield* rateLimits.takePlace(`outage/${asked.caller.stream}/${asked.vatId.value}`, places, window)
    const event = VatIdVerificationFailed.make({ ...factsOf(asked), attempts: outage.attempts })
    const { usage } = yield* metering.record({ caller: asked.caller, event, units: free.granted ? 0 : 1, latestOf: null })
    const { attempts, message, retryAfterSeconds } = outage
    return yield* new SourcesUnavailable({ attempts, message, retryAfterSeconds, usage })
  })

  return { record, repeat, recordOutage }
})

const make = Effect.fnUntraced(function* ({ countries, freshness }: ValidationRules) {
  const confirmations = yield* ConfirmVatId
  const cache = yield* AnswerCache
  const sources = yield* Sources
  const { record, recordOutage, repeat } = yield* makeRecords

  const lookUp = Effect.fnUntraced(function* (asked: Question) {
    const { caller, requester, vatId } = asked
    const stored = asked.forceLive ? Option.none() : yield* cache.newest(vatId)
    if (Option.isSome(stored) && isFresh(stored.value.answer, freshness, yield* DateTime.now)) {
      return yield* repeat(asked, stored.value, "cache", [])
    }
    const found = yield* Effect.result(sources.lookUp({ vatId, requester, mayFallBack: caller._tag === "Key" }))
    if (Result.isSuccess(found)) return yield* record(asked, { ...found.success, served: "live", position: null })
    if (Option.isSome(stored) && isServableStale(stored.value.answer, freshness, yield* DateTime.now)) {
      return yield* repeat(asked, stored.value, "stale", found.failure.attempts)
    }
    return yield* recordOutage(asked, found.failure)
  })

  const confirm = Effect.fnUntraced(function* (asked: Question, confirmation: ConfirmationRequest) {
    const confirmed = yield* Effect.result(confirmations.confirm(confirmation))
    if (Result.isFailure(confirmed)) {
      if (confirmed.failure._tag === "SourcesUnavailable") return yield* recordOutage(asked, confirmed.failure)
      return yield* confirmed.failure
    }
    const { answer, position, receipt, requestId, usage } = confirmed.success
    return {
      vatId: asked.vatId,
      answer,
      position,
      served: "live",
      usage,
      confirmation: { receipt, requestId }
    } satisfies Validation
  })

  const validate = Effect.fn("ValidateVatId.validate")(function* (request: ValidationRequest) {
    const { caller, company } = request
    const vatId = yield* Effect.fromResult(VatIds.parse(request.input))
    // The rules come before the quota, the quota before the sources.
    const admitted = company === null ? null : yield* admitConfirmation(request, vatId, countries)
    const requester = admitted?.requester ?? (yield* requesterOf(request))
    const asked: Question = { ...request, vatId, requester }
    const { limit, used } = caller.usage
    if (used >= limit) return yield* quotaExceeded(caller, used)
    return admitted === null ? yield* lookUp(asked) : yield* confirm(asked, admitted)
  }, ValidationMetrics.counted)

  return { validate }
})

interface Question {
  readonly caller: Caller
  readonly vatId: VatIds.VatId
  readonly requester: VatIds.VatId | null
  readonly forceLive: boolean
}

const factsOf = (asked: Question) => ({
  vat_id: asked.vatId.value,
  force_live: asked.forceLive,
  requester_vat_id: asked.requester?.value ?? null
})

/** The requester's VAT ID, if one was sent and may be used; nothing that was sent is ignored silently. */
const requesterOf = Effect.fnUntraced(function* ({ caller, requesterVatId }: ValidationRequest) {
  if (requesterVatId === null) return null
  if (caller._tag === "Anonymous") {
    return yield* new ApiKeyRequired({ message: "requester_vat_id needs an API key: get a free one from POST /v1/register" })
  }
  return yield* Option.match(VatIds.parseGerman(requesterVatId), {
    onNone: () => Effect.fail(new InvalidRequester({})),
    onSome: (requester) => Effect.succeed(requester)
  })
})

export class ValidateVatId extends Context.Service<ValidateVatId, Effect.Success<ReturnType<typeof make>>>()(
  "vatproof/domain/ValidateVatId"
) {
  static readonly layer = (rules: ValidationRules) => Layer.effect(ValidateVatId, make(rules))
}
