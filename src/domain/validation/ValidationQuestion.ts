/** The question of a validation, the rules that allow it, and its events (rules 12, 26). */
import { Result } from "effect"
import type * as Admission from "#domain/callers/Admission.ts"
import type { CachedAnswer } from "#domain/vat/AnswerCache.ts"
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
} from "#domain/receipts/ConfirmationRules.ts"
import type { DomainEvent } from "#domain/kernel/DomainEvent.ts"
import type { IdentifiedEvent } from "#domain/callers/Metering.ts"
import { documentOf, ValidationAccepted, type ValidationTask } from "#domain/validation/PendingValidation.ts"
import { referenceIn } from "#domain/kernel/PersonalData.ts"
import type { Receipt } from "#domain/receipts/Receipt.ts"
import * as VatIds from "#domain/vat/VatId.ts"
import type { Answer, Attempt } from "#domain/vat/Verdict.ts"
import { VatIdVerified } from "#domain/vat/ValidationEvents.ts"

/** `input` is the VAT ID as the client sent it. */
export interface ValidationRequest extends Admission.Call {
  readonly input: string
  readonly requesterVatId: string | null
  /** The caller's own invoice or order number. */
  readonly reference: string | null
  readonly company: CompanyData | null
  readonly forceLive: boolean
  /** False disables the fallback from VIES to the BZSt. */
  readonly mayAskBzst?: boolean
  /** The task of a validation that has an id of its own. */
  readonly task?: ValidationTask
  /** Ensures one event per Idempotency-Key for a confirmation without a task. */
  readonly identity?: IdentifiedEvent
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

/** A request that passed the rules. */
export interface Question {
  readonly request: ValidationRequest
  readonly caller: Caller
  readonly vatId: VatIds.VatId
  readonly requester: VatIds.VatId | null
  readonly confirmation: AdmittedConfirmation | null
}

/** The reasons to reject a request before the quota is checked. */
export type Refusal = VatIds.InvalidVatId | ApiKeyRequired | PaidPlanRequired | ConfirmationUnsupported | InvalidRequester

/** Checks the rules of a request in their order (rules 12, 26). */
export const questionOf = (
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

export const validationOf = ({ vatId }: Question, answer: CachedAnswer, served: Validation["served"]): Validation => ({
  vatId,
  answer,
  served,
  consultationNumber: null,
  confirmation: null
})

export const factsOf = ({ request, requester, vatId }: Question) => ({
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

/** The acceptance of the question's task. */
export const acceptedOf = (question: Question): DomainEvent | undefined => {
  const { caller, request, vatId } = question
  const opening = request.task?.opening ?? null
  if (opening === null || caller._tag === "Anonymous") return undefined
  const facts = {
    account_id: caller.accountId,
    key_id: caller.keyId,
    vat_id: vatId.value,
    force_live: request.forceLive,
    expires_at: opening.expiresAt,
    request_hash: opening.requestHash,
    reference_hash: opening.referenceHash
  }
  return ValidationAccepted.make(facts, documentOf(request.requesterVatId, request.company, request.reference))
}

/** The key that makes the answering event unique, if one is required. */
export const identityOf = (question: Question): IdentifiedEvent | undefined => {
  const { identity, task } = question.request
  if (task === undefined) return identity
  const { closingId, opening, taskId } = task
  const mayBeStored = opening !== null && opening.requestHash !== null
  return { eventId: closingId, causationId: taskId, accepted: acceptedOf(question), mayBeStored }
}
