/** Lets calls in: identifies the caller, counts the call in the caller's minute, and looks at the quota (rules 12, 40). */
import { Effect, MutableRef, Predicate } from "effect"
import type { Caller } from "#domain/callers/Caller.ts"
import { type Credential, identify, Identity, type InvalidApiKey, refresh } from "#domain/callers/Identity.ts"
import { makeLruCache } from "#domain/kernel/LruCache.ts"
import { type CallRefusal, Metering, type PreconditionFailed, quotaRefusal } from "#domain/callers/Metering.ts"
import type { Standing } from "#domain/callers/Standing.ts"
import { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** A call by a client. `standing` is set as soon as the call is counted, whether it succeeds or fails; it is null before. */
export interface Call {
  readonly credential: Credential
  readonly standing: MutableRef.MutableRef<Standing | null>
}

/** How often a call begins again because what was cached for it is out of date. Each time it is read again. */
const maxAttempts = 5
/** Callers whose last call was refused. */
const maxRefused = 50_000

export const make = Effect.gen(function* () {
  const identity = yield* Identity
  const metering = yield* Metering
  const refused = makeLruCache<true>(maxRefused)

  /** Counts the call in the caller's minute, unless it began again after it was counted. */
  const count = (call: Call, caller: Caller) => {
    const counted = MutableRef.get(call.standing)
    // The plan may have changed since.
    if (counted !== null) return Effect.succeed({ ...counted, usage: { ...counted.usage, limit: caller.limit } })
    return Effect.map(metering.admit(caller), (standing) => {
      MutableRef.set(call.standing, standing)
      return standing
    })
  }

  /** Counts a call that asks for work, and fails if the quota is used up. */
  const countWork = (call: Call, caller: Caller) =>
    Effect.flatMap(count(call, caller), (standing) => {
      const refusal = quotaRefusal(caller, standing)
      if (refusal !== null) return Effect.fail(refusal)
      refused.delete(caller.stream)
      return Effect.succeed(standing)
    })

  /** Notes how a refused caller stands, and that the next call may be refused as well. */
  const noteRefusal = (call: Call, caller: Caller, refusal: CallRefusal) => {
    refused.set(caller.stream, true)
    MutableRef.set(call.standing, refusal.standing ?? null)
  }

  /**
   * Runs `use` with the caller. If what was cached of the caller or of an answer is out of date, reads it again and repeats: nothing was stored
   * or counted.
   */
  const withCaller = <A, E>(
    call: Call,
    refreshAnswer: Effect.Effect<unknown, StoreUnavailable>,
    use: (caller: Caller) => Effect.Effect<A, E | PreconditionFailed>
  ) => {
    type Attempt = Effect.Effect<A, E | InvalidApiKey | StoreUnavailable>
    const again = ({ what }: PreconditionFailed, caller: Caller, left: number): Attempt => {
      if (left === 0) return Effect.fail(new StoreUnavailable({ cause: "What the call relies on changed at each attempt" }))
      return what === "answer"
        ? Effect.flatMap(refreshAnswer, () => attempt(caller, left - 1))
        : Effect.flatMap(refresh(identity, call.credential), (current) => attempt(current, left - 1))
    }
    const attempt = (caller: Caller, left: number): Attempt =>
      Effect.matchEffect(use(caller), {
        onSuccess: Effect.succeed,
        onFailure: (failure) => {
          if (isPreconditionFailed(failure)) return again(failure, caller, left)
          if (isCallRefusal(failure)) noteRefusal(call, caller, failure)
          return Effect.fail(failure)
        }
      })
    return Effect.flatMapEager(identify(identity, call.credential), (caller) => attempt(caller, maxAttempts))
  }

  return {
    count,
    countWork,
    withCaller,
    /**
     * Whether a call is counted before its append: if it has been counted already, or the last call of the caller was refused. A refused
     * command makes its batch slower.
     */
    isCountedFirst: (call: Call, caller: Caller) => MutableRef.get(call.standing) !== null || refused.get(caller.stream) === true
  }
})

const isPreconditionFailed = (error: unknown): error is PreconditionFailed => Predicate.isTagged(error, "PreconditionFailed")

const isCallRefusal = (error: unknown): error is CallRefusal =>
  Predicate.isTagged(error, "QuotaExceeded") || Predicate.isTagged(error, "RateLimitExceeded")
