/** The main use case: validates a VAT ID against cache and sources, and records the result (rules 12-25). */
import { Clock, Context, Duration, Effect, Layer, MutableRef, Option, Result } from "effect"
import * as Admission from "#domain/callers/Admission.ts"
import {
  AnswerCache,
  type CachedAnswer,
  type Freshness,
  isFresh,
  isServableStale,
  type StoredAnswer
} from "#domain/vat/AnswerCache.ts"
import type { Caller } from "#domain/callers/Caller.ts"
import {
  admitConfirmation,
  type AdmittedConfirmation,
  ApiKeyRequired,
  type CompanyData,
  type ConfirmationCountries,
  type ConfirmationUnsupported,
  InvalidRequester,
  type PaidPlanRequired
} from "#domain/receipts/Confirmation.ts"
import { ConfirmVatId } from "#domain/validation/ConfirmVatId.ts"
import type { ConfirmationRefusal } from "#domain/receipts/ConfirmationSource.ts"
import type { DomainEvent } from "#domain/kernel/DomainEvent.ts"
import type { InvalidApiKey } from "#domain/callers/Identity.ts"
import { type CallRefusal, type Charge, Metering, type PreconditionFailed } from "#domain/callers/Metering.ts"
import { RateLimits } from "#domain/callers/RateLimits.ts"
import { referenceIn } from "#domain/kernel/PersonalData.ts"
import type { Receipt } from "#domain/receipts/Receipt.ts"
import * as RecordCharge from "#domain/validation/RecordCharge.ts"
import { Sources, type SourcesUnavailable } from "#domain/vat/Sources.ts"
import type { Standing } from "#domain/callers/Standing.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import { validationMetrics } from "#domain/validation/ValidationMetrics.ts"
import * as VatIds from "#domain/vat/VatId.ts"
import type { Answer, Attempt } from "#domain/vat/Verdict.ts"
import { VatIdVerificationFailed, VatIdVerified } from "#domain/vat/ValidationEvents.ts"

/** `input` is the VAT ID as the client sent it. */
export interface ValidationRequest extends Admission.Call {
  readonly input: string
  readonly requesterVatId: string | null
  /** The caller's own invoice or order number. */
  readonly reference: string | null
  readonly company: CompanyData | null
  readonly forceLive: boolean
}

/**
 * `served` is `live` for a new answer of the source, `cache` for a fresh older one, `stale` for an old one during an outage of
 * every source.
 */
export interface Validation {
  readonly vatId: VatIds.VatId
  readonly answer: CachedAnswer
  readonly served: "live" | "cache" | "stale"
  readonly consultationNumber: string | null
  /** The receipt of a qualified confirmation, if one was requested. */
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

export type ValidationFailure =
  | Refusal
  | CallRefusal
  | InvalidApiKey
  | SourcesUnavailable
  | ConfirmationRefusal
  | StoreUnavailable

type Answering = Effect.Effect<Validation, ValidationFailure | PreconditionFailed>

/** A request that passed the rules. */
interface Question {
  readonly request: ValidationRequest
  readonly caller: Caller
  readonly vatId: VatIds.VatId
  readonly requester: VatIds.VatId | null
  readonly confirmation: AdmittedConfirmation | null
}

/** Uncounted outages per VAT ID and caller in a sliding hour (rule 36). */
const uncountedOutages = { slots: 3, window: Duration.hours(1) }

/** Records validations: each outcome is one event with its price. */
const makeRecords = Effect.gen(function* () {
  const metering = yield* Metering
  const rateLimits = yield* RateLimits
  const recordCharge = yield* RecordCharge.make
  const hits = new WeakMap<StoredAnswer, DomainEvent>()

  /**
   * The event of a cache hit. It is the same for all requests without requester and reference, so it is created and encoded once.
   */
  const hitEvent = (question: Question, stored: StoredAnswer) => {
    const isShared = question.requester === null && question.request.reference === null
    const encoded = isShared ? hits.get(stored) : undefined
    if (encoded !== undefined) return encoded
    const event = eventOf(question, stored.answer, { served: "cache", position: stored.position })
    if (isShared) hits.set(stored, event)
    return event
  }

  /** Repeats a cached answer. Without `admitted` the same append counts the call. */
  const hit = (question: Question, stored: StoredAnswer, admitted: Standing | null) => {
    const { caller, request, vatId } = question
    const repeats = { vatId, asOf: stored.asOf }
    return Effect.matchEffect(metering.record({ caller, event: hitEvent(question, stored), units: 1, admitted, repeats }), {
      onSuccess: ({ standing }) => {
        MutableRef.set(request.standing, standing)
        return Effect.succeed(validationOf(question, stored.answer, "cache"))
      },
      // A hit creates no stream.
      onFailure: (failure) => (failure._tag === "StreamExists" ? Effect.die(failure) : Effect.fail(failure))
    })
  }

  const record = Effect.fnUntraced(function* (question: Question, charge: Omit<Charge, "caller">) {
    const { caller, request } = question
    const recorded = yield* Effect.catchTag(
      recordCharge(request.credential, caller, (current) => Effect.succeed({ ...charge, caller: current })),
      ["StreamExists", "PaidPlanRequired"],
      Effect.die
    )
    MutableRef.set(request.standing, recorded.standing)
  })

  const live = Effect.fnUntraced(function* (
    question: Question,
    answer: Answer,
    attempts: ReadonlyArray<Attempt>,
    admitted: Standing
  ) {
    const event = eventOf(question, answer, { served: "live", answer, attempts })
    yield* record(question, { event, units: 1, admitted })
    return { ...validationOf(question, answer, "live"), consultationNumber: answer.consultation_number } satisfies Validation
  })

  const stale = Effect.fnUntraced(function* (
    question: Question,
    { answer, position }: StoredAnswer,
    attempts: ReadonlyArray<Attempt>,
    admitted: Standing
  ) {
    yield* record(question, { event: eventOf(question, answer, { served: "stale", position, attempts }), units: 1, admitted })
    return validationOf(question, answer, "stale")
  })

  /** The first outages are free; a caller that keeps retrying is charged. */
  const outage = Effect.fnUntraced(function* (question: Question, failure: SourcesUnavailable, admitted: Standing) {
    const { caller, vatId } = question
    const { slots, window } = uncountedOutages
    const accountId = caller._tag === "Key" ? caller.accountId : null
    const free = yield* rateLimits.acquireSlot(`outage/${caller.stream}/${vatId.value}`, slots, window)
    const facts = { ...factsOf(question), account_id: accountId, attempts: failure.attempts }
    const event = VatIdVerificationFailed.make(facts, referenceIn(question.request.reference))
    yield* record(question, { event, units: free.granted ? 0 : 1, admitted })
    return yield* failure
  })

  return { hit, live, stale, outage }
})

const make = Effect.fnUntraced(function* ({ countries, freshness }: ValidationRules) {
  const { count, countWork, isCountedFirst, withCaller } = yield* Admission.make
  const cache = yield* AnswerCache
  const sources = yield* Sources
  const confirmations = yield* ConfirmVatId
  const records = yield* makeRecords
  const clock = yield* Clock.Clock

  const lookUp = Effect.fnUntraced(function* (question: Question, stored: Option.Option<StoredAnswer>, admitted: Standing) {
    const { caller, requester, vatId } = question
    const lookup = yield* Effect.result(sources.lookUp({ vatId, requester, mayFallBack: caller._tag === "Key" }))
    if (Result.isSuccess(lookup)) return yield* records.live(question, lookup.success.answer, lookup.success.attempts, admitted)
    if (Option.isSome(stored) && isServableStale(stored.value.answer, freshness, clock.currentTimeMillisUnsafe())) {
      return yield* records.stale(question, stored.value, lookup.failure.attempts, admitted)
    }
    return yield* records.outage(question, lookup.failure, admitted)
  })

  const confirm = Effect.fnUntraced(function* (question: Question, confirmation: AdmittedConfirmation) {
    const { request } = question
    const admitted = yield* countWork(request, question.caller)
    const { credential, reference } = request
    const confirmed = yield* Effect.result(confirmations.confirm({ ...confirmation, credential, reference, admitted }))
    if (Result.isFailure(confirmed)) {
      if (confirmed.failure._tag !== "SourcesUnavailable") return yield* confirmed.failure
      return yield* records.outage(question, confirmed.failure, admitted)
    }
    const { answer, receipt, requestId, standing } = confirmed.success
    MutableRef.set(request.standing, standing)
    return { ...validationOf(question, answer, "live"), confirmation: { receipt, requestId } } satisfies Validation
  })

  const answerFrom = (question: Question, stored: Option.Option<StoredAnswer>): Answering => {
    const { caller, request } = question
    if (Option.isNone(stored) || !isFresh(stored.value.answer, freshness, clock.currentTimeMillisUnsafe())) {
      return Effect.flatMap(countWork(request, caller), (admitted) => lookUp(question, stored, admitted))
    }
    const hit = (admitted: Standing | null) => records.hit(question, stored.value, admitted)
    return isCountedFirst(request, caller) ? Effect.flatMap(countWork(request, caller), hit) : hit(null)
  }

  const answer = (question: Question): Answering => {
    const { confirmation, request, vatId } = question
    if (confirmation !== null) return confirm(question, confirmation)
    if (request.forceLive) return answerFrom(question, Option.none())
    return Effect.flatMapEager(cache.newest(vatId), (stored) => answerFrom(question, stored))
  }

  const validate = (request: ValidationRequest) => {
    const vatId = VatIds.parse(request.input)
    const refreshAnswer = Result.isSuccess(vatId) ? cache.refresh(vatId.success) : Effect.void
    return withCaller(request, refreshAnswer, (caller): Answering => {
      const question = Result.isSuccess(vatId)
        ? questionOf(request, caller, vatId.success, countries)
        : Result.fail<Refusal>(vatId.failure)
      return Result.isSuccess(question)
        ? answer(question.success)
        : Effect.andThen(count(request, caller), Effect.fail(question.failure))
    }).pipe(validationMetrics(request))
  }

  return {
    validate,
    /** Counts a call that is rejected because its request is malformed. */
    refuse: (call: Admission.Call) => withCaller(call, Effect.void, (caller) => count(call, caller))
  }
})

/** The reasons to reject a request before the quota is checked. */
type Refusal = VatIds.InvalidVatId | ApiKeyRequired | PaidPlanRequired | ConfirmationUnsupported | InvalidRequester

/** Checks the rules of a request in their order (rules 12, 26). */
const questionOf = (
  request: ValidationRequest,
  caller: Caller,
  vatId: VatIds.VatId,
  countries: ConfirmationCountries
): Result.Result<Question, Refusal> => {
  const plain = { request, caller, vatId, requester: null, confirmation: null }
  const { company, requesterVatId } = request
  if (company !== null) {
    const admitted = admitConfirmation({ caller, requesterVatId, company }, vatId, countries)
    return Result.map(admitted, (confirmation) => ({ ...plain, requester: confirmation.requester, confirmation }))
  }
  if (requesterVatId === null) return Result.succeed(plain)
  return Result.map(requesterOf(caller, requesterVatId), (requester) => ({ ...plain, requester }))
}

/** Returns the requester's VAT ID if it is allowed; a supplied field is never ignored silently. */
const requesterOf = (caller: Caller, text: string): Result.Result<VatIds.VatId, ApiKeyRequired | InvalidRequester> =>
  caller._tag === "Anonymous"
    ? Result.fail(new ApiKeyRequired({ message: "requester_vat_id needs an API key: get a free one from POST /v1/register" }))
    : Result.fromOption(VatIds.parseGerman(text), () => new InvalidRequester({}))

const validationOf = ({ vatId }: Question, answer: CachedAnswer, served: Validation["served"]): Validation => ({
  vatId,
  answer,
  served,
  consultationNumber: null,
  confirmation: null
})

const factsOf = ({ request, requester, vatId }: Question) => ({
  vat_id: vatId.value,
  force_live: request.forceLive,
  requester_vat_id: requester?.value ?? null
})

interface Served {
  readonly served: Validation["served"]
  readonly position?: number
  readonly answer?: Answer
  readonly attempts?: ReadonlyArray<Attempt>
}

/** The event of a verdict. Only a live one contains the answer; the others refer to the position of that event. */
const eventOf = (
  question: Question,
  { answered_at, source, valid }: CachedAnswer,
  { answer = undefined, attempts = [], position, served }: Served
) => {
  const reference = referenceIn(question.request.reference)
  return VatIdVerified.make(
    {
      ...factsOf(question),
      valid,
      source,
      answered_at,
      served,
      answer: answer ?? null,
      answer_position: position ?? null,
      attempts
    },
    answer === undefined ? reference : { ...answer, ...reference }
  )
}

export class ValidateVatId extends Context.Service<ValidateVatId, Effect.Success<ReturnType<typeof make>>>()(
  "vatproof/domain/validation/ValidateVatId"
) {
  static readonly layer = (rules: ValidationRules) => Layer.effect(ValidateVatId, make(rules))
}
