/**
 * Records the outcomes of validations: one event for each, with the units that it costs. ConfirmVatId.ts does the same for
 * confirmations.
 */
import { Duration, Effect, MutableRef } from "effect"
import type { StoredAnswer } from "#domain/vat/AnswerCache.ts"
import type { DomainEvent } from "#domain/log/DomainEvent.ts"
import { type Charge, Metering } from "#domain/callers/Metering.ts"
import { RateLimiter } from "#domain/callers/RateLimiter.ts"
import type { ValidationTask } from "#domain/validation/ValidationTask.ts"
import { referenceIn } from "#domain/vat/Verdict.ts"
import * as RecordCharge from "#domain/validation/RecordCharge.ts"
import type { SourcesUnavailable } from "#domain/vat/Sources.ts"
import type { Standing } from "#domain/callers/Standing.ts"
import type { Answer, Attempt } from "#domain/vat/Verdict.ts"
import { VatIdVerificationFailed } from "#domain/vat/ValidationEvents.ts"
import {
  acceptedOf,
  eventOf,
  factsOf,
  identityOf,
  type Question,
  type Validation,
  validationOf
} from "#domain/validation/ValidationQuestion.ts"

/** Number of free validations without an answer of any source, per VAT ID and caller in a sliding hour (rule 36). */
const uncountedOutages = { slots: 3, window: Duration.hours(1) }

/** Returns a function that records cache hits: validations that a fresh cached answer has answered. */
export const makeHit = Effect.gen(function* () {
  const metering = yield* Metering
  const hits = new WeakMap<StoredAnswer, DomainEvent>()

  /**
   * Returns the event of a cache hit. It is the same for all requests without
   * requester and reference, so it is created and encoded once.
   */
  const hitEvent = (question: Question, stored: StoredAnswer) => {
    const isShared = question.requester === null && question.request.reference === null
    const encoded = isShared ? hits.get(stored) : undefined
    if (encoded !== undefined) return encoded
    const event = eventOf(question, stored.answer, { served: "cache", position: stored.position })
    if (isShared) hits.set(stored, event)
    return event
  }

  /** Records a cache hit. If `admitted` is null, the append also counts the call towards the limit per minute. */
  return (question: Question, stored: StoredAnswer, admitted: Standing | null) => {
    const { caller, request, vatId } = question
    const repeats = { vatId, asOf: stored.asOf }
    const charge = {
      caller,
      event: hitEvent(question, stored),
      units: 1,
      admitted,
      repeats,
      identity: identityOf(question)
    } as const
    return Effect.matchEffect(metering.record(charge), {
      onSuccess: ({ standing }) => {
        MutableRef.set(request.standing, standing)
        return Effect.succeed(validationOf(question, stored.answer, "cache"))
      },
      // A cache hit creates no stream, so StreamExists is a defect.
      onFailure: (failure) => (failure._tag === "StreamExists" ? Effect.die(failure) : Effect.fail(failure))
    })
  }
})

/** Returns functions that record every outcome except a cache hit: a live or stale answer, an outage, or an accepted task. */
export const make = Effect.gen(function* () {
  const rateLimiter = yield* RateLimiter
  const recordCharge = yield* RecordCharge.make

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
    yield* record(question, { event, units: 1, admitted, identity: identityOf(question) })
    return { ...validationOf(question, answer, "live"), consultationNumber: answer.consultation_number } satisfies Validation
  })

  /** Fails with PreconditionFailed if the stored answer is no longer the newest one: its names may have been erased meanwhile. */
  const stale = Effect.fnUntraced(function* (
    question: Question,
    { answer, asOf, position }: StoredAnswer,
    attempts: ReadonlyArray<Attempt>,
    admitted: Standing
  ) {
    const event = eventOf(question, answer, { served: "stale", position, attempts })
    const repeats = { vatId: question.vatId, asOf }
    yield* record(question, { event, units: 1, admitted, repeats, identity: identityOf(question) })
    return validationOf(question, answer, "stale")
  })

  /**
   * Records that no source answered, and fails with `failure`. The first outages are free; further ones are charged. A failed
   * attempt to answer an accepted validation is not recorded, because the task engine repeats it.
   */
  const outage = Effect.fnUntraced(function* (question: Question, failure: SourcesUnavailable, admitted: Standing) {
    const { caller, request, vatId } = question
    if (request.task?.opening === null) return yield* failure
    const { slots, window } = uncountedOutages
    const accountId = caller._tag === "Key" ? caller.accountId : null
    const free = yield* rateLimiter.acquireSlots([`outage/${caller.stream}/${vatId.value}`], slots, window)
    const facts = { ...factsOf(question), account_id: accountId, attempts: failure.attempts }
    const event = VatIdVerificationFailed.make(facts, referenceIn(request.reference))
    yield* record(question, { event, units: free.granted ? 0 : 1, admitted })
    return yield* failure
  })

  /** Records that the task was accepted. */
  const accept = Effect.fnUntraced(function* (question: Question, task: ValidationTask, admitted: Standing | null) {
    const event = acceptedOf(question)
    if (event === undefined) return yield* Effect.die("A task was accepted without an API key")
    const mayBeStored = task.opening !== null && task.opening.requestHash !== null
    yield* record(question, { event, units: 0, admitted, identity: { eventId: task.taskId, causationId: null, mayBeStored } })
  })

  return { live, stale, outage, accept }
})
