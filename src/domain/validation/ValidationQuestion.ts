/** Turns a request for a validation into a question that the rules allow, and into events (rules 12, 26). */
import { Result } from "effect"
import type * as Admission from "#domain/callers/Admission.ts"
import type { PaidPlanRequired } from "#domain/callers/PaymentRequired.ts"
import type { CachedAnswer } from "#domain/vat/AnswerCache.ts"
import type { Caller } from "#domain/callers/Caller.ts"
import {
  admitConfirmation,
  type AdmittedConfirmation,
  ApiKeyRequired,
  type CompanyData,
  type Countries,
  type ConfirmationUnsupported,
  InvalidRequester
} from "#domain/receipts/ConfirmationRules.ts"
import type { DomainEvent } from "#domain/log/DomainEvent.ts"
import type { IdentifiedEvent } from "#domain/callers/Metering.ts"
import { documentOf, ValidationAccepted, type ValidationTask } from "#domain/validation/ValidationTask.ts"
import { referenceIn } from "#domain/vat/Verdict.ts"
import type { MaxAge } from "#domain/vat/Freshness.ts"
import type { Receipt } from "#domain/receipts/Receipt.ts"
import * as VatIds from "#domain/vat/VatId.ts"
import type { Answer, Attempt } from "#domain/vat/Verdict.ts"
import { VatIdVerified } from "#domain/vat/ValidationEvents.ts"

/** A request for a validation. `input` is the VAT ID as the client sent it. */
export interface ValidationRequest extends Admission.Call {
  readonly input: string
  readonly requesterVatId: string | null
  /** The caller's own invoice or order number. */
  readonly reference: string | null
  readonly company: CompanyData | null
  readonly maxAge: MaxAge
  /** False disables the fallback from VIES to the BZSt. */
  readonly mayAskBzst?: boolean
  /** The task that the answer closes, for a validation with an id. */
  readonly task?: ValidationTask
}

/**
 * The result of a validation. `served` is `live` for a new answer of a source, `cache` for a cached answer that is still fresh, and `stale`
 * for an older cached answer during an outage of the sources.
 */
export interface Validation {
  readonly vatId: VatIds.VatId
  readonly answer: CachedAnswer
  readonly served: "live" | "cache" | "stale"
  readonly consultationNumber: string | null
  /** The receipt of a qualified confirmation, if one was requested. */
  readonly confirmation: Confirmation | null
}

/** `requestId` is the BZSt's number of the request. */
export interface Confirmation {
  readonly receipt: Receipt
  readonly requestId: string | null
}

/** A request that the rules allow, with its parsed VAT IDs. */
export interface Question {
  readonly request: ValidationRequest
  readonly caller: Caller
  readonly vatId: VatIds.VatId
  readonly requester: VatIds.VatId | null
  readonly confirmation: AdmittedConfirmation | null
}

/** The reasons to reject a request before the quota is checked. */
export type Refusal = VatIds.InvalidVatId | ApiKeyRequired | PaidPlanRequired | ConfirmationUnsupported | InvalidRequester

/** The VAT IDs that may be confirmed, and those that may be requesters of other validations. */
export interface QuestionRules {
  readonly countries: Countries
  readonly requesterCountries: Countries
}

type Admitted = Pick<Question, "confirmation" | "requester">
const plain: Result.Result<Admitted, Refusal> = Result.succeed({ requester: null, confirmation: null })

/** Returns the requester and the confirmation of a request, or the first refusal in the order of the rules (12, 26). */
export const admit = (
  { company, requesterVatId }: Pick<ValidationRequest, "company" | "requesterVatId">,
  caller: Caller,
  vatId: VatIds.VatId,
  { countries, requesterCountries }: QuestionRules
): Result.Result<Admitted, Refusal> => {
  if (company !== null) {
    const admitted = admitConfirmation({ caller, requesterVatId, company }, vatId, countries)
    return Result.map(admitted, (confirmation) => ({ requester: confirmation.requester, confirmation }))
  }
  if (requesterVatId === null) return plain
  return Result.map(requesterOf(caller, requesterVatId, requesterCountries), (requester) => ({ requester, confirmation: null }))
}

/** Returns the question of a request, or its refusal. */
export const questionOf = (
  request: ValidationRequest,
  caller: Caller,
  vatId: VatIds.VatId,
  rules: QuestionRules
): Result.Result<Question, Refusal> =>
  Result.map(admit(request, caller, vatId, rules), ({ confirmation, requester }) => ({
    request,
    caller,
    vatId,
    requester,
    confirmation
  }))

/**
 * Returns the requester's VAT ID. Fails if the caller may not send a requester, or not this one: a requester is never ignored silently.
 */
const requesterOf = (
  caller: Caller,
  text: string,
  countries: Countries
): Result.Result<VatIds.VatId, ApiKeyRequired | InvalidRequester> =>
  caller._tag === "Anonymous"
    ? Result.fail(new ApiKeyRequired({ message: "requester_vat_id needs an API key: get a free one from POST /v1/register" }))
    : Result.fromOption(parseOf[countries](text), () => new InvalidRequester({ allowed: countries }))

const parseOf = { DE: VatIds.parseGerman, EU: VatIds.parseOption }

export const validationOf = ({ vatId }: Question, answer: CachedAnswer, served: Validation["served"]): Validation => ({
  vatId,
  answer,
  served,
  consultationNumber: null,
  confirmation: null
})

export const factsOf = ({ request, requester, vatId }: Question) => ({
  vat_id: vatId.value,
  force_live: request.maxAge === 0,
  requester_vat_id: requester?.value ?? null
})

interface Served {
  readonly served: Validation["served"]
  readonly position?: number
  readonly answer?: Answer
  readonly attempts?: ReadonlyArray<Attempt>
}

/**
 * Returns the event that records a verdict. If the answer came live from a source, the event contains the answer. If it was a
 * cached answer, the event contains the position of the event with that answer.
 */
export const eventOf = (
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

/** Returns the event that accepts the question's task; undefined if there is no new task. */
export const acceptedOf = (question: Question): DomainEvent | undefined => {
  const { caller, request, vatId } = question
  const opening = request.task?.opening ?? null
  if (opening === null || caller._tag === "Anonymous") return undefined
  const facts = {
    account_id: caller.accountId,
    key_id: caller.keyId,
    vat_id: vatId.value,
    force_live: request.maxAge === 0,
    ...(request.maxAge === null ? {} : { max_age: request.maxAge }),
    expires_at: opening.expiresAt,
    request_hash: opening.requestHash,
    reference_hash: opening.referenceHash
  }
  const accepted = ValidationAccepted.make(facts, documentOf(request.requesterVatId, request.company, request.reference))
  return { ...accepted, occurredAt: opening.requestedAt }
}

/** Returns the id of the event that will store the answer, computed from the task; undefined for a validation without a task. */
export const identityOf = (question: Question): IdentifiedEvent | undefined => {
  const { task } = question.request
  if (task === undefined) return undefined
  const { closingId, opening, taskId } = task
  const mayBeStored = opening !== null && opening.requestHash !== null
  return { eventId: closingId, causationId: taskId, accepted: acceptedOf(question), mayBeStored }
}
