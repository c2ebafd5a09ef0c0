/** Admits calls: identifies the caller, counts the call towards the limit per minute, and checks the quota (rules 12, 40). */
import { Effect, MutableRef, Predicate } from "effect"
import type { Caller } from "#domain/callers/Caller.ts"
import { type Credential, identify, Identity, refresh } from "#domain/callers/Identity.ts"
import { makeLruCache } from "#domain/concurrency/LruCache.ts"
import { type CallRefusal, Metering, type PreconditionFailed, quotaRefusal } from "#domain/callers/Metering.ts"
import type { Standing } from "#domain/callers/Standing.ts"
import { whileOutdated } from "#domain/callers/ReadAgain.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** A call while it runs. `standing` (used quota and remaining calls of the minute) is null until the call is counted. */
export interface Call {
  readonly credential: Credential
  readonly standing: MutableRef.MutableRef<Standing | null>
  /** Set if the call is not counted towards the limit per minute. */
  readonly counting?: "not counted"
}

/** Returns a call of background work for a key. The limit per minute counted the request that submitted the work. */
export const backgroundCall = (keyId: string): Call => ({
  credential: { _tag: "KeyId", keyId },
  standing: MutableRef.make<Standing | null>(null),
  counting: "not counted"
})

/** Runs a call of a client. Then gives `note` the caller's standing, also if the call failed or was interrupted. */
export const counted = <A, E, R>(
  credential: Credential,
  run: (call: Call) => Effect.Effect<A, E, R>,
  note: (standing: Standing) => void
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const standing = MutableRef.make<Standing | null>(null)
    const end = Effect.sync(() => {
      const known = MutableRef.get(standing)
      if (known !== null) note(known)
    })
    return Effect.ensuring(run({ credential, standing }), end)
  })

/** Maximum number of entries of `refused`, the cache of callers whose last call was refused. */
const maxRefused = 50_000

export const make = Effect.gen(function* () {
  const identity = yield* Identity
  const metering = yield* Metering
  const refused = makeLruCache<true>(maxRefused)

  /** Counts the call towards the limit per minute, unless an earlier attempt counted it. Returns the standing. */
  const count = (call: Call, caller: Caller) => {
    if (call.counting === "not counted") return Effect.succeed(uncounted(caller))
    const counted = MutableRef.get(call.standing)
    // The plan may have changed since the call was counted, so the standing gets the current limit.
    if (counted !== null) return Effect.succeed({ ...counted, usage: { ...counted.usage, limit: caller.limit } })
    return Effect.map(metering.admit(caller), (standing) => {
      MutableRef.set(call.standing, standing)
      return standing
    })
  }

  /** Counts a call that needs a source. Fails if the quota is used up. */
  const countWork = (call: Call, caller: Caller) =>
    Effect.flatMap(count(call, caller), (standing) => {
      const refusal = quotaRefusal(caller, standing)
      if (refusal !== null) return Effect.fail(refusal)
      refused.delete(caller.stream)
      return Effect.succeed(standing)
    })

  /** Sets the standing of a refused call, and adds the caller to `refused`, because its next call is likely to be refused too. */
  const noteRefusal = (call: Call, caller: Caller, refusal: CallRefusal) => {
    refused.set(caller.stream, true)
    MutableRef.set(call.standing, refusal.standing ?? null)
  }

  /**
   * Runs `use` with the caller. If the cached caller or answer was outdated, reads it again and repeats `use`.
   */
  const withCaller = <A, E>(
    call: Call,
    refreshAnswer: Effect.Effect<unknown, StoreUnavailable>,
    use: (caller: Caller) => Effect.Effect<A, E | PreconditionFailed>
  ) => {
    const refused = (caller: Caller) => (failure: E | PreconditionFailed) => {
      if (isCallRefusal(failure)) noteRefusal(call, caller, failure)
      return Effect.fail(failure)
    }
    return Effect.flatMapEager(identify(identity, call.credential), (cached) =>
      whileOutdated(
        cached,
        (caller) => Effect.matchEffect(use(caller), { onSuccess: Effect.succeed, onFailure: refused(caller) }),
        ({ outdated }, caller) => (outdated === "answer" ? Effect.as(refreshAnswer, caller) : refresh(identity, call.credential))
      )
    )
  }

  return {
    count,
    countWork,
    withCaller,
    /**
     * Returns true if the append must not count the call itself. The call is not counted, an earlier attempt counted it, or the caller's last
     * call was refused. A call after a refusal is likely to be refused too, and a refused command slows down the append for all
     * commands of the same group commit. Such a call is therefore counted before the append.
     */
    isCountedFirst: (call: Call, caller: Caller) =>
      call.counting === "not counted" || MutableRef.get(call.standing) !== null || refused.get(caller.stream) === true
  }
})

const uncounted = (caller: Caller): Standing => ({
  usage: { used: caller._tag === "Key" ? caller.used : 0, limit: caller.limit },
  window: null
})

const isCallRefusal = (error: unknown): error is CallRefusal =>
  Predicate.isTagged(error, "QuotaExceeded") || Predicate.isTagged(error, "RateLimitExceeded")
