/**
 * The short way of a validation: this process remembers the caller and a fresh answer, and the append that records and charges the
 * repetition also checks that both are still true. One round trip, and nothing is taken on trust: if anything moved, nothing is stored
 * and the request goes the long way (`ValidateVatId`), which asks for everything.
 */
import { Context, DateTime, Effect, Layer, Option, Result } from "effect"
import { type Freshness, isFresh, latestKey, type StoredAnswer } from "#domain/AnswerCache.ts"
import { isWellFormed } from "#domain/ApiKey.ts"
import type { KeyCaller } from "#domain/Caller.ts"
import { Hashing } from "#domain/Hashing.ts"
import { makeMemory } from "#domain/Memory.ts"
import { Metering, type QuotaExceeded } from "#domain/Metering.ts"
import type { RateLimitExceeded, RateWindow } from "#domain/RateLimits.ts"
import type { StoreUnavailable } from "#domain/StoreUnavailable.ts"
import type { Usage } from "#domain/Usage.ts"
import type { Validation } from "#domain/ValidateVatId.ts"
import * as ValidationMetrics from "#domain/ValidationMetrics.ts"
import { parse } from "#domain/VatId.ts"
import { VatIdVerified } from "#domain/Verification.ts"

/** How much is remembered: some 300 bytes a caller and a few kilobytes an answer. */
const maxCallers = 50_000
const maxAnswers = 20_000

type Refusal = QuotaExceeded | RateLimitExceeded | StoreUnavailable

/** A repetition that was recorded, or refused by the append itself. `window` is the caller's minute with it, where it was counted. */
export interface Repetition {
  readonly outcome: Result.Result<Validation, Refusal>
  readonly usage: Usage
  readonly window: RateWindow | null
}

const make = Effect.fnUntraced(function* (freshness: Freshness) {
  const hashing = yield* Hashing
  const metering = yield* Metering
  const callers = makeMemory<KeyCaller>(maxCallers)
  const answers = makeMemory<StoredAnswer>(maxAnswers)

  const recallCaller = (key: string, now: DateTime.Utc) => {
    const caller = isWellFormed(key) ? callers.recall(hashing.sha256(key)) : undefined
    return caller !== undefined && DateTime.isLessThan(now, caller.period.end) ? caller : undefined
  }

  const recallAnswer = (input: string, now: DateTime.Utc) => {
    const vatId = parse(input)
    if (Result.isFailure(vatId)) return undefined
    const stored = answers.recall(vatId.success.value)
    return stored !== undefined && isFresh(stored.answer, freshness, now) ? { vatId: vatId.success, stored } : undefined
  }

  /** None if it has to go the long way. */
  const repeat = Effect.fnUntraced(function* (key: string, input: string) {
    const now = yield* DateTime.now
    const caller = recallCaller(key, now)
    const known = caller === undefined ? undefined : recallAnswer(input, now)
    if (caller === undefined || known === undefined || caller.usage.used >= caller.usage.limit) return Option.none<Repetition>()
    const { stored, vatId } = known
    const answer = { ...stored.answer, consultation_number: null }
    const event = VatIdVerified.make({
      vat_id: vatId.value,
      force_live: false,
      requester_vat_id: null,
      valid: answer.valid,
      source: answer.source,
      answered_at: answer.answered_at,
      served: "cache",
      answer: null,
      answer_position: stored.position,
      attempts: []
    })
    const newest = { key: latestKey(vatId), position: stored.position }
    const recorded = yield* Effect.result(metering.recordRepeated({ caller, event, units: 1, latestOf: null, newest }))
    if (Result.isFailure(recorded)) {
      if (recorded.failure._tag !== "Outdated") return Option.some(refusalOf(caller, recorded.failure))
      callers.forget(hashing.sha256(key))
      answers.forget(vatId.value)
      return Option.none<Repetition>()
    }
    const { usage, window } = recorded.success
    callers.remember(hashing.sha256(key), { ...caller, usage })
    const validation: Validation = { vatId, answer, position: stored.position, served: "cache", usage, confirmation: null }
    return Option.some<Repetition>({ outcome: Result.succeed(validation), usage, window })
  })

  return {
    repeat: (key: string, input: string) => ValidationMetrics.repeated(repeat(key, input)),
    /** Remembers a caller as identified just now. */
    rememberCaller: (key: string, caller: KeyCaller) => callers.remember(hashing.sha256(key), caller),
    /** Remembers the answer that a validation gave, unless it was a stale one. */
    rememberAnswer: ({ answer, position, served, vatId }: Validation) => {
      if (served !== "stale") answers.remember(vatId.value, { answer, position })
    }
  }
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
