/**
 * The short way of a validation: this process remembers the caller and a fresh answer, and the append that records and charges the
 * repetition also checks that both are still true. One round trip, and nothing is taken on trust: if anything moved, nothing is stored
 * and the request goes the long way (`ValidateVatId`), which asks for everything. Only that a minute is full is believed for a moment.
 */
import { Cause, Clock, Context, DateTime, Effect, Exit, Layer, Option, Result } from "effect"
import { type Freshness, freshSpan, isWithin, latestKey, type Span } from "#domain/AnswerCache.ts"
import type { KeyCaller } from "#domain/Caller.ts"
import type { DomainEvent } from "#domain/DomainEvent.ts"
import { Hashing } from "#domain/Hashing.ts"
import { makeMemory } from "#domain/Memory.ts"
import { Metering, type Outdated, type RecordedRepetition, type RepetitionRefusal } from "#domain/Metering.ts"
import type { RateLimitExceeded, RateWindow } from "#domain/RateLimits.ts"
import type { ServedRequest } from "#domain/RequestContext.ts"
import type { Usage } from "#domain/Usage.ts"
import type { Validation } from "#domain/ValidateVatId.ts"
import * as ValidationMetrics from "#domain/ValidationMetrics.ts"
import { parse, type VatId } from "#domain/VatId.ts"
import type { Answer } from "#domain/Verdict.ts"
import { VatIdVerified } from "#domain/Verification.ts"

/** How much is remembered: some 300 bytes a caller and a kilobyte an answer. */
const maxCallers = 50_000
const maxAnswers = 20_000

/** A caller, until when that is true, and what its last repetition found on its meter. */
interface RememberedCaller {
  readonly keyHash: string
  readonly caller: KeyCaller
  readonly until: number
  used: number
  full: FullMinute | null
}

/** What the log said of a full minute, and when: until it ends it says so again, unless the caller's plan or key changed since. */
interface FullMinute {
  readonly refusal: RateLimitExceeded
  readonly believed: Span
}

/**
 * How long a minute that was full is believed to be full. Whoever calls on and on is in the way of all others otherwise: a batch with a call
 * that is refused costs the log twice as much (docs/decisions/0005).
 */
const fullForMs = 250

/** What a repetition says of an answer. Its evidence stays in the log: it would be most of what is remembered. */
export interface RepeatedAnswer {
  readonly position: number
  readonly answer: Pick<Answer, "source" | "valid" | "answered_at" | "company_name" | "company_address">
}

/** An answer, when it is fresh, and the event that each repetition of it is: always the same one. */
interface RememberedAnswer {
  readonly vatId: VatId
  readonly stored: RepeatedAnswer
  readonly fresh: Span
  readonly newest: { readonly key: string; readonly position: number }
  readonly event: DomainEvent
}

/** A caller and an answer, both good as far as this process knows: all that is left is to record it. */
export interface Remembered {
  readonly caller: RememberedCaller
  readonly answer: RememberedAnswer
}

/**
 * What came of a repetition. `window` is the caller's minute with it, where it was counted. An outdated one was not recorded: the request
 * has to go the long way.
 */
export type Repetition =
  | { readonly _tag: "Recorded"; readonly position: number; readonly usage: Usage; readonly window: RateWindow | null }
  | { readonly _tag: "Refused"; readonly refusal: RepetitionRefusal; readonly usage: Usage; readonly window: RateWindow | null }
  | { readonly _tag: "Outdated" }
  | { readonly _tag: "Broken"; readonly cause: Cause.Cause<unknown> }

const make = Effect.fnUntraced(function* (freshness: Freshness) {
  const hashing = yield* Hashing
  const metering = yield* Metering
  const clock = yield* Clock.Clock
  const noteRepeated = yield* ValidationMetrics.makeRepeated
  const callers = makeMemory<RememberedCaller>(maxCallers)
  const answers = makeMemory<RememberedAnswer>(maxAnswers)

  /** Most callers write a VAT ID as it is remembered. */
  const recallAnswer = (input: string) => {
    const known = answers.recall(input)
    if (known !== undefined) return known
    const vatId = parse(input)
    return Result.isSuccess(vatId) ? answers.recall(vatId.success.value) : undefined
  }

  /** Undefined if the request has to go the long way. */
  const recall = (key: string, input: string): Remembered | undefined => {
    const answer = recallAnswer(input)
    if (answer === undefined) return undefined
    const caller = callers.recall(hashing.sha256(key))
    if (caller === undefined || caller.used >= caller.caller.usage.limit) return undefined
    const now = clock.currentTimeMillisUnsafe()
    return now < caller.until && isWithin(answer.fresh, now) ? { caller, answer } : undefined
  }

  const outcomeOf = (
    { answer, caller: remembered }: Remembered,
    exit: Exit.Exit<RecordedRepetition, RepetitionRefusal | Outdated>
  ): Repetition => {
    if (Exit.isSuccess(exit)) {
      const { position, usage, window } = exit.value
      remembered.used = usage.used
      noteRepeated.answered(answer.stored.answer)
      return { _tag: "Recorded", position, usage, window }
    }
    const failure = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
    if (failure === undefined || failure._tag === "Outdated") {
      // Also where nobody knows what is wrong with them: so it is not wrong for good.
      callers.forget(remembered.keyHash)
      answers.forget(answer.vatId.value)
      return failure ?? { _tag: "Broken", cause: exit.cause }
    }
    noteRepeated.refused(failure)
    // Another replica may have spent the rest: the next call takes the long way.
    if (failure._tag === "QuotaExceeded") remembered.used = failure.used
    remembered.full = fullMinuteOf(failure, clock.currentTimeMillisUnsafe())
    return refused(remembered, failure)
  }

  /** The refusal of a call that needs no asking, if it is one. */
  const refusedAlready = ({ caller }: Remembered): Repetition | undefined =>
    caller.full !== null && isWithin(caller.full.believed, clock.currentTimeMillisUnsafe())
      ? refused(caller, caller.full.refusal)
      : undefined

  const record = (remembered: Remembered, served: ServedRequest, done: (repetition: Repetition) => void) => {
    const { event, newest } = remembered.answer
    const { caller } = remembered.caller
    metering.recordRepeatedUnsafe({ caller, event, newest }, served, (exit) => done(outcomeOf(remembered, exit)))
  }

  return {
    recall,
    refusedAlready,
    /** Records a repetition in plain code; `done` is called once. */
    record,
    /** Remembers a caller as identified just now. */
    rememberCaller: (key: string, caller: KeyCaller) => {
      const keyHash = hashing.sha256(key)
      const until = DateTime.toEpochMillis(caller.period.end)
      callers.remember(keyHash, { keyHash, caller, until, used: caller.usage.used, full: null })
    },
    /** Remembers the answer that a validation gave, unless it was a stale one. */
    rememberAnswer: ({ answer, position, served, vatId }: Validation) => {
      if (served === "stale" || answers.recall(vatId.value)?.stored.position === position) return
      const stored = { answer: repeatedOf(answer), position }
      const newest = { key: latestKey(vatId), position }
      answers.remember(vatId.value, { vatId, stored, fresh: freshSpan(answer, freshness), newest, event: eventOf(vatId, stored) })
    }
  }
})

const repeatedOf = ({ answered_at, company_address, company_name, source, valid }: Answer): RepeatedAnswer["answer"] => ({
  answered_at,
  company_address,
  company_name,
  source,
  valid
})

const eventOf = (vatId: VatId, { answer, position }: RepeatedAnswer) =>
  VatIdVerified.make({
    vat_id: vatId.value,
    force_live: false,
    requester_vat_id: null,
    valid: answer.valid,
    source: answer.source,
    answered_at: answer.answered_at,
    served: "cache",
    answer: null,
    answer_position: position,
    attempts: []
  })

/** Seconds are rounded up: of two, one is left, less what the answer took. */
const fullMinuteOf = (refusal: RepetitionRefusal, nowMs: number): FullMinute | null =>
  refusal._tag === "RateLimitExceeded" && refusal.retryAfterSeconds > 1
    ? { refusal, believed: { from: nowMs, until: nowMs + fullForMs } }
    : null

const refused = ({ caller, used: usedBefore }: RememberedCaller, refusal: RepetitionRefusal): Repetition => {
  const used = refusal._tag === "StoreUnavailable" ? undefined : refusal.used
  const window = refusal._tag === "StoreUnavailable" ? null : (refusal.window ?? null)
  return { _tag: "Refused", refusal, usage: { ...caller.usage, used: used ?? usedBefore }, window }
}

export class RepeatAnswer extends Context.Service<RepeatAnswer, Effect.Success<ReturnType<typeof make>>>()(
  "vatproof/domain/RepeatAnswer"
) {
  static readonly layer = (freshness: Freshness) => Layer.effect(RepeatAnswer, make(freshness))
}
