/** The health of one source, from live calls and probes alike (rule 24). */
import { Clock, DateTime, Duration, Effect } from "effect"
import { monotonicMs } from "#domain/concurrency/MonotonicTime.ts"
import type { SourceState } from "#domain/vat/Sources.ts"
import type { FailureReason, SourceFailure } from "#domain/vat/Verdict.ts"

/** A source is degraded for this long after a failure or a slow answer. */
const memoryMs = Duration.toMillis("60 seconds")
/** An answer that takes longer than this makes a source degraded. */
const slowMs = Duration.toMillis("5 seconds")

/** A source that has answered a live call counts as answering for this long, even if its status page reports an outage. */
const answerTrustMs = Duration.toMillis("5 seconds")

/** A call or probe that ended at `endedMs` of the monotonic clock, and `endedAtMs` of the wall clock. */
export interface Ended {
  readonly endedMs: number
  readonly endedAtMs: number
  readonly durationMs: number
  readonly failure: SourceFailure | null
}

export const make = Effect.map(Clock.currentTimeMillis, (startedMs) => {
  let lastCheckedAtMs = startedMs
  let latencyMs: number | null = null
  let lastTroubleMs: number | null = null
  let lastReason: FailureReason | null = null
  let answers = true
  let lastLiveAnswerMs: number | null = null

  const observe = ({ durationMs, endedAtMs, endedMs }: Ended, reason: FailureReason | null): void => {
    lastCheckedAtMs = endedAtMs
    if (reason === null) latencyMs = durationMs
    if (reason === null && durationMs <= slowMs) return
    lastTroubleMs = endedMs
    lastReason = reason
  }

  /** Records the end of a live call. A failure that concerns only the question does not count as a failure of the source. */
  const observeCall = (ended: Ended): void => {
    const { endedMs, failure } = ended
    observe(ended, failure !== null && failure.scope !== "question" ? failure.reason : null)
    // A timeout without a code does not prove that the source is down: the source is perhaps waiting for a member state's
    // register. Only a probe shows whether the source itself answers.
    const hangs = failure?.reason === "timeout" && failure.code === null
    lastLiveAnswerMs = hangs || failure?.scope === "source" ? null : endedMs
    if (!hangs) answers = lastLiveAnswerMs !== null
  }

  const observeProbe = (ended: Ended): void => {
    const { endedMs, failure } = ended
    if (failure?.reason === "circuit_open") return
    observe(ended, failure?.reason ?? null)
    if (failure === null) answers = true
    else if (lastLiveAnswerMs === null || endedMs - lastLiveAnswerMs >= answerTrustMs) answers = false
  }

  /**
   * Returns the state of the source. `unavailable` is true while the service rejects calls to the source. If it is false, a
   * recent failure or slow answer makes the source `degraded`.
   */
  const status = (unavailable: boolean) =>
    Effect.map(monotonicMs, (nowMs) => {
      const troubled = lastTroubleMs !== null && nowMs - lastTroubleMs < memoryMs
      const state: SourceState = unavailable ? "unavailable" : troubled ? "degraded" : "operational"
      return {
        state,
        answers: answers && !unavailable,
        latencyMs: unavailable ? null : latencyMs,
        lastChecked: DateTime.makeUnsafe(lastCheckedAtMs),
        reason: state === "operational" ? null : lastReason
      }
    })

  return { observeCall, observeProbe, status }
})
