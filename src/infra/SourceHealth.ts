/** How one source has been doing lately, from live calls and probes alike (DECISIONS 24). */
import { DateTime, Duration, Effect, Ref } from "effect"
import type { SourceState } from "#domain/Sources.ts"
import type { FailureReason } from "#domain/Verdict.ts"

/** A failure, or an answer that took longer than `slow`, is remembered this long. */
const memory = Duration.seconds(60)
/** An answer later than this makes a source degraded. */
const slow = Duration.seconds(5)

interface Seen {
  readonly lastChecked: DateTime.Utc
  readonly latencyMs: number | null
  readonly lastTrouble: DateTime.Utc | null
  readonly reason: FailureReason | null
}

/** One call that ended: `reason` is null if the source answered. */
export interface Observation {
  readonly durationMs: number
  readonly reason: FailureReason | null
}

export const make = Effect.gen(function* () {
  const started = yield* DateTime.now
  const seen = yield* Ref.make<Seen>({ lastChecked: started, latencyMs: null, lastTrouble: null, reason: null })

  /** Notes a call that ended now. */
  const observe = Effect.fnUntraced(function* ({ durationMs, reason }: Observation) {
    const now = yield* DateTime.now
    const trouble = reason !== null || durationMs > Duration.toMillis(slow)
    yield* Ref.update(seen, (before) => ({
      lastChecked: now,
      latencyMs: reason === null ? durationMs : before.latencyMs,
      lastTrouble: trouble ? now : before.lastTrouble,
      reason: trouble ? reason : before.reason
    }))
  })

  /** `unavailable` is decided by the breaker; without it the source is degraded for a while after trouble. */
  const status = Effect.fnUntraced(function* (unavailable: boolean) {
    const { lastChecked, lastTrouble, latencyMs, reason } = yield* Ref.get(seen)
    const now = yield* DateTime.now
    const troubled = lastTrouble !== null && Duration.isLessThan(DateTime.distance(lastTrouble, now), memory)
    const state: SourceState = unavailable ? "unavailable" : troubled ? "degraded" : "operational"
    return { state, latencyMs: unavailable ? null : latencyMs, lastChecked, reason }
  })

  return { observe, status }
})
