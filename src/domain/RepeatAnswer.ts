/**
 * The short way of a validation: this process remembers the caller and a fresh answer, and the append that records and charges the
 * repetition also checks that both are still true. One round trip, and nothing is taken on trust: if anything moved, nothing is stored
 * and the request goes the long way (`ValidateVatId`), which asks for everything.
 */
import { Clock, Context, DateTime, Effect, Layer, Result } from "effect"
import { type Freshness, isFresh, latestKey, type StoredAnswer } from "#domain/AnswerCache.ts"
import { isWellFormed } from "#domain/ApiKey.ts"
import type { KeyCaller } from "#domain/Caller.ts"
import type { DomainEvent } from "#domain/DomainEvent.ts"
import { Hashing } from "#domain/Hashing.ts"
import { makeMemory } from "#domain/Memory.ts"
import { Metering, type QuotaExceeded } from "#domain/Metering.ts"
import type { RateLimitExceeded, RateWindow } from "#domain/RateLimits.ts"
import type { ServedRequest } from "#domain/RequestContext.ts"
import type { StoreUnavailable } from "#domain/StoreUnavailable.ts"
import type { Usage } from "#domain/Usage.ts"
import type { Validation } from "#domain/ValidateVatId.ts"
import * as ValidationMetrics from "#domain/ValidationMetrics.ts"
import { parse, type VatId } from "#domain/VatId.ts"
import { VatIdVerified } from "#domain/Verification.ts"

/** How much is remembered: some 300 bytes a caller and a few kilobytes an answer. */
const maxCallers = 50_000
const maxAnswers = 20_000

type Refusal = QuotaExceeded | RateLimitExceeded | StoreUnavailable

/** An answer, and the event that each repetition of it is: always the same one. */
interface RememberedAnswer {
  readonly vatId: VatId
  readonly stored: StoredAnswer
  readonly event: DomainEvent
}

/** A caller and an answer, both good as far as this process knows: all that is left is to record it. */
export interface Remembered {
  readonly keyHash: string
  readonly caller: KeyCaller
  readonly answer: RememberedAnswer
}

/** A repetition that was recorded, or refused by the append itself. `window` is the caller's minute with it, where it was counted. */
export interface Repetition {
  readonly outcome: Result.Result<{ readonly vatId: VatId; readonly stored: StoredAnswer }, Refusal>
  readonly usage: Usage
  readonly window: RateWindow | null
}

const make = Effect.fnUntraced(function* (freshness: Freshness) {
  const hashing = yield* Hashing
  const metering = yield* Metering
  const clock = yield* Clock.Clock
  const noteRepeated = yield* ValidationMetrics.makeRepeated
  const callers = makeMemory<KeyCaller>(maxCallers)
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
    if (answer === undefined || !isWellFormed(key)) return undefined
    const keyHash = hashing.sha256(key)
    const caller = callers.recall(keyHash)
    if (caller === undefined || caller.usage.used >= caller.usage.limit) return undefined
    const now = DateTime.makeUnsafe(clock.currentTimeMillisUnsafe())
    const isGood = DateTime.isLessThan(now, caller.period.end) && isFresh(answer.stored.answer, freshness, now)
    return isGood ? { keyHash, caller, answer } : undefined
  }

  /** Undefined if what was remembered is no longer so: nothing was recorded, and the request has to go the long way. */
  const record = ({ answer, caller, keyHash }: Remembered, served: ServedRequest): Effect.Effect<Repetition | undefined> =>
    Effect.match(metering.recordRepeated({ caller, event: answer.event, newest: newestOf(answer) }, served), {
      onSuccess: ({ usage, window }) => {
        callers.remember(keyHash, { ...caller, usage })
        noteRepeated.answered(answer.stored.answer)
        return { outcome: Result.succeed(answer), usage, window }
      },
      onFailure: (failure) => {
        if (failure._tag === "Outdated") {
          callers.forget(keyHash)
          answers.forget(answer.vatId.value)
          return undefined
        }
        noteRepeated.refused(failure)
        return refusalOf(caller, failure)
      }
    })

  return {
    recall,
    record,
    /** Remembers a caller as identified just now. */
    rememberCaller: (key: string, caller: KeyCaller) => callers.remember(hashing.sha256(key), caller),
    /** Remembers the answer that a validation gave, unless it was a stale one. */
    rememberAnswer: ({ answer, position, served, vatId }: Validation) => {
      if (served === "stale" || answers.recall(vatId.value)?.stored.position === position) return
      const stored = { answer: { ...answer, consultation_number: null }, position }
      answers.remember(vatId.value, { vatId, stored, event: eventOf(vatId, stored) })
    }
  }
})

const newestOf = ({ stored, vatId }: RememberedAnswer) => ({ key: latestKey(vatId), position: stored.position })

const eventOf = (vatId: VatId, { answer, position }: StoredAnswer) =>
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

const refusalOf = (caller: KeyCaller, refusal: Refusal): Repetition => {
  const used = refusal._tag === "StoreUnavailable" ? undefined : refusal.used
  const window = refusal._tag === "RateLimitExceeded" ? (refusal.window ?? null) : null
  return { outcome: Result.fail(refusal), usage: { ...caller.usage, used: used ?? caller.usage.used }, window }
}

export class RepeatAnswer extends Context.Service<RepeatAnswer, Effect.Success<ReturnType<typeof make>>>()(
  "vatproof/domain/RepeatAnswer"
) {
  static readonly layer = (freshness: Freshness) => Layer.effect(RepeatAnswer, make(freshness))
}
