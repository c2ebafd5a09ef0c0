/** The health of one source, from live calls and probes alike (DECISIONS 24). */
import { Clock, DateTime, Duration, Effect } from "effect"
import type { SourceState } from "#domain/Sources.ts"
import type { FailureReason } from "#domain/Verdict.ts"

/** A source is degraded for this long after a failure or a slow answer. */
const memoryMs = Duration.toMillis("60 seconds")
/** An answer later than this makes a source degraded. */
const slowMs = Duration.toMillis("5 seconds")

/** A call that ended at `endedMs`: `reason` is null if the source answered. */
export interface Observation {
  readonly endedMs: number
  readonly durationMs: number
  readonly reason: FailureReason | null
}

export const make = Effect.map(Clock.currentTimeMillis, (startedMs) => {
  let lastCheckedMs = startedMs
  let latencyMs: number | null = null
  let lastTroubleMs: number | null = null
  let lastReason: FailureReason | null = null

  /** Notes a call that ended. */
  const observe = ({ durationMs, endedMs, reason }: Observation): void => {
    lastCheckedMs = endedMs
    if (reason === null) latencyMs = durationMs
    if (reason === null && durationMs <= slowMs) return
    lastTroubleMs = endedMs
    lastReason = reason
  }

  /** `unavailable` is the breaker's decision; without it the source is degraded for a while after trouble. */
  const status = (unavailable: boolean) =>
    Effect.map(Clock.currentTimeMillis, (nowMs) => {
      const troubled = lastTroubleMs !== null && nowMs - lastTroubleMs < memoryMs
      const state: SourceState = unavailable ? "unavailable" : troubled ? "degraded" : "operational"
      return {
        state,
        latencyMs: unavailable ? null : latencyMs,
        lastChecked: DateTime.makeUnsafe(lastCheckedMs),
        reason: lastReason
      }
    })

  return { observe, status }
})
