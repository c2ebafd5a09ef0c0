/** The main use case: validates a VAT ID with the answer cache and the sources, and records the result (rules 12-25). */
import { Clock, Context, Effect, Layer, MutableRef, Option, Result } from "effect"
import * as Admission from "#domain/callers/Admission.ts"
import { AnswerCache, type StoredAnswer } from "#domain/vat/AnswerCache.ts"
import { type Freshness, isFresh, isServableStale } from "#domain/vat/Freshness.ts"
import type { AdmittedConfirmation } from "#domain/receipts/ConfirmationRules.ts"
import type { KeyCaller } from "#domain/callers/Caller.ts"
import { ConfirmVatId } from "#domain/validation/ConfirmVatId.ts"
import type { ConfirmationRefusal } from "#domain/receipts/ConfirmationSource.ts"
import type { InvalidApiKey } from "#domain/callers/Identity.ts"
import type { AlreadyRecorded, CallRefusal, PreconditionFailed } from "#domain/callers/Metering.ts"
import type { ValidationTask } from "#domain/validation/ValidationTask.ts"
import { Sources, type SourcesUnavailable } from "#domain/vat/Sources.ts"
import type { Standing } from "#domain/callers/Standing.ts"
import { whileOutdated } from "#domain/callers/ReadAgain.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import { validationMetrics } from "#domain/validation/ValidationMetrics.ts"
import {
  admit,
  identityOf,
  type Question,
  questionOf,
  type QuestionRules,
  type Refusal,
  type Validation,
  type ValidationRequest,
  validationOf
} from "#domain/validation/ValidationQuestion.ts"
import * as ValidationCharges from "#domain/validation/ValidationCharges.ts"
import * as VatIds from "#domain/vat/VatId.ts"
import { overBudget } from "#domain/vat/Verdict.ts"

/** How long answers may be served, and which VAT IDs may be confirmed or be requesters. */
export interface ValidationRules extends QuestionRules {
  readonly freshness: Freshness
}

export type ValidationFailure =
  | Refusal
  | CallRefusal
  | InvalidApiKey
  | SourcesUnavailable
  | ConfirmationRefusal
  | AlreadyRecorded
  | StoreUnavailable

type Answering<A> = Effect.Effect<A, ValidationFailure | PreconditionFailed>

/** Handles a question that the cache does not answer: `confirm` handles confirmations, `lookUp` all other questions. */
interface OnMiss<A> {
  readonly confirm: (question: Question, confirmation: AdmittedConfirmation) => Answering<A>
  readonly lookUp: (question: Question, stored: Option.Option<StoredAnswer>) => Answering<A>
}

type Counting = Pick<Effect.Success<typeof Admission.make>, "countWork" | "isCountedFirst">

/** Answers questions at once, by calling the sources. */
const makeAskSources = Effect.fnUntraced(function* ({ freshness }: ValidationRules, { countWork }: Counting) {
  const sources = yield* Sources
  const cache = yield* AnswerCache
  const confirmations = yield* ConfirmVatId
  const records = yield* ValidationCharges.make
  const clock = yield* Clock.Clock

  const lookUp = Effect.fnUntraced(function* (question: Question, stored: Option.Option<StoredAnswer>, admitted: Standing) {
    const { caller, requester, vatId } = question
    const { maxAge } = question.request
    const hasKey = caller._tag === "Key"
    const mayFallBack = hasKey && question.request.mayAskBzst !== false
    const isBackground = question.request.task?.opening === null
    const lookup = yield* Effect.result(sources.lookUp({ vatId, requester, hasKey, mayFallBack, isBackground }))
    if (Result.isSuccess(lookup)) {
      const { answer, attempts, requester } = lookup.success
      return yield* records.live({ ...question, requester }, answer, attempts, admitted)
    }
    const { attempts } = lookup.failure
    // If the budget of VIES calls was spent, VIES was not called. An accepted validation then waits for the next budget (rule 88).
    const waitsForBudget = isBackground && attempts.some(({ code }) => code === overBudget)
    const recordStale = (newest: Option.Option<StoredAnswer>) => {
      const nowMs = clock.currentTimeMillisUnsafe()
      const servable = Option.filter(newest, ({ answer }) => !waitsForBudget && isServableStale(answer, freshness, nowMs, maxAge))
      return Option.isNone(servable)
        ? records.outage(question, lookup.failure, admitted)
        : records.stale(question, servable.value, attempts, admitted)
    }
    // The sources were asked already, so only the answer is read again.
    return yield* whileOutdated(stored, recordStale, () => cache.refresh(vatId))
  })

  const confirm = Effect.fnUntraced(function* (question: Question, confirmation: AdmittedConfirmation) {
    const { request } = question
    const admitted = yield* countWork(request, question.caller)
    const { credential, reference } = request
    const confirmationRequest = { ...confirmation, credential, reference, admitted, identity: identityOf(question) }
    const confirmed = yield* Effect.result(confirmations.confirm(confirmationRequest))
    if (Result.isFailure(confirmed)) {
      if (confirmed.failure._tag !== "SourcesUnavailable") return yield* confirmed.failure
      return yield* records.outage(question, confirmed.failure, admitted)
    }
    const { answer, receipt, requestId, standing } = confirmed.success
    MutableRef.set(request.standing, standing)
    return { ...validationOf(question, answer, "live"), confirmation: { receipt, requestId } } satisfies Validation
  })

  const askSources: OnMiss<Validation> = {
    confirm,
    lookUp: (question, stored) =>
      Effect.flatMap(countWork(question.request, question.caller), (admitted) => lookUp(question, stored, admitted))
  }
  return askSources
})

/** Accepts questions that are answered later: stores each as a task, for which the task engine calls the sources. */
const makeAcceptAsTask = Effect.fnUntraced(function* ({ countWork, isCountedFirst }: Counting) {
  const records = yield* ValidationCharges.make

  /**
   * Stores the accepted task. The same append counts the call, unless the
   * caller is likely to be refused: then the call is counted first.
   */
  const accept = (question: Question, task: ValidationTask) => {
    const { caller, request } = question
    const hasQuota = caller._tag === "Key" && caller.used < caller.limit
    const counted = hasQuota && !isCountedFirst(request, caller) ? Effect.succeed(null) : countWork(request, caller)
    return Effect.flatMap(counted, (admitted) => Effect.as(records.accept(question, task, admitted), null))
  }

  return (task: ValidationTask): OnMiss<null> => ({
    confirm: (question) => accept(question, task),
    lookUp: (question) => accept(question, task)
  })
})

/** Leaves questions without an answer: calls no source and stores no task. */
const leaveUnanswered: OnMiss<null> = { confirm: () => Effect.succeed(null), lookUp: () => Effect.succeed(null) }

const make = Effect.fnUntraced(function* (rules: ValidationRules) {
  const { freshness } = rules
  const admission = yield* Admission.make
  const { count, countWork, isCountedFirst, withCaller } = admission
  const cache = yield* AnswerCache
  const hit = yield* ValidationCharges.makeHit
  const askSources = yield* makeAskSources(rules, admission)
  const acceptAsTask = yield* makeAcceptAsTask(admission)
  const clock = yield* Clock.Clock

  const isFreshFor = ({ maxAge }: ValidationRequest, { answer }: StoredAnswer) =>
    isFresh(answer, freshness, clock.currentTimeMillisUnsafe(), maxAge)

  /**
   * Returns the newest answer. If the answer in the cache of this process is not fresh, reads the database: another replica may
   * have stored a newer answer.
   */
  const newestAnswer = ({ request, vatId }: Question) =>
    Effect.flatMapEager(cache.newest(vatId), (stored) =>
      Option.isNone(stored) || isFreshFor(request, stored.value) ? Effect.succeed(stored) : cache.refresh(vatId)
    )

  const answerFrom = <A>(
    question: Question,
    stored: Option.Option<StoredAnswer>,
    ask: OnMiss<A>["lookUp"]
  ): Answering<Validation | A> => {
    const { caller, request } = question
    if (Option.isNone(stored) || !isFreshFor(request, stored.value)) return ask(question, stored)
    const repeat = (admitted: Standing | null) => hit(question, stored.value, admitted)
    return isCountedFirst(request, caller) ? Effect.flatMap(countWork(request, caller), repeat) : repeat(null)
  }

  const answer = <A>(question: Question, onMiss: OnMiss<A>): Answering<Validation | A> => {
    const { confirmation, request } = question
    if (confirmation !== null) return onMiss.confirm(question, confirmation)
    if (request.maxAge === 0) return onMiss.lookUp(question, Option.none())
    return Effect.flatMapEager(newestAnswer(question), (stored) => answerFrom(question, stored, onMiss.lookUp))
  }

  const answerWith = <A>(request: ValidationRequest, onMiss: OnMiss<A>) => {
    const vatId = VatIds.parse(request.input)
    const refreshAnswer = Result.isSuccess(vatId) ? cache.refresh(vatId.success) : Effect.void
    return withCaller(request, refreshAnswer, (caller): Answering<Validation | A> => {
      const question = Result.isSuccess(vatId)
        ? questionOf(request, caller, vatId.success, rules)
        : Result.fail<Refusal>(vatId.failure)
      return Result.isSuccess(question)
        ? answer(question.success, onMiss)
        : Effect.andThen(count(request, caller), Effect.fail(question.failure))
    })
  }

  return {
    /** Fails if the rules refuse a request that names a readable VAT ID. Counts nothing. */
    requireAllowed: (caller: KeyCaller, { input, ...more }: Pick<ValidationRequest, "company" | "input" | "requesterVatId">) => {
      const vatId = VatIds.parse(input)
      return Result.isSuccess(vatId) ? Effect.asVoid(Effect.fromResult(admit(more, caller, vatId.success, rules))) : Effect.void
    },
    /** Answers from the cache or from the sources. */
    validate: (request: ValidationRequest) => answerWith(request, askSources).pipe(validationMetrics(request)),
    /** Answers from the cache; otherwise accepts the task and returns null. */
    accept: (request: ValidationRequest, task: ValidationTask) => answerWith({ ...request, task }, acceptAsTask(task)),
    /** Answers from the cache; otherwise records nothing and returns null. */
    answerFromCache: (request: ValidationRequest) => answerWith(request, leaveUnanswered),
    /** Counts a call that validates nothing towards the limit per minute: a malformed request, or the submission of a batch. */
    countCall: (call: Admission.Call) => withCaller(call, Effect.void, (caller) => count(call, caller))
  }
})

export class ValidateVatId extends Context.Service<ValidateVatId, Effect.Success<ReturnType<typeof make>>>()(
  "vatproof/domain/validation/ValidateVatId"
) {
  static readonly layer = (rules: ValidationRules) => Layer.effect(ValidateVatId, make(rules))
}
