/**
 * The operator's own VAT ID, which VIES gets with look-ups of callers with a key who send no requester (rule 25). A rejected requester
 * costs a second call, so after three rejections in a row it is not sent for an hour. Until VIES accepts it, one look-up at a time sends it.
 */
import { Duration, Effect, Metric, Option, Semaphore } from "effect"
import { monotonicMs } from "#domain/concurrency/MonotonicTime.ts"
import type { VatId } from "#domain/vat/VatId.ts"
import * as SourceMetrics from "#infra/sources/SourceMetrics.ts"

const maxRejections = 3
const pauseMs = Duration.toMillis("1 hour")
/** Maximum wait for the outcome of another look-up. Then the look-up sends no requester, so its answer has no consultation number. */
const turnTimeout = "2 seconds"

/** Runs a question to VIES with the operator's requester, or with null while this requester must not be sent. */
export type Lend = <A, E>(ask: (requester: VatId | null) => Effect.Effect<A, E>) => Effect.Effect<A, E>

/** Creates `lend`, and `note`, which notes whether VIES rejected or accepted a requester. */
export const make = Effect.fnUntraced(function* (operator: VatId | null) {
  const turn = yield* Semaphore.make(1)
  let isAccepted = false
  let rejections = 0
  let pausedUntilMs = Number.NEGATIVE_INFINITY

  const measure = Effect.suspend(() => Metric.update(SourceMetrics.requesterRejected(), rejections < maxRejections ? 0 : 1))
  const current = Effect.map(monotonicMs, (nowMs) => (nowMs < pausedUntilMs ? null : operator))

  const inTurn: Lend = (ask) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(restore(Effect.timeoutOption(turn.take(1), turnTimeout)), (taken) => {
        if (Option.isNone(taken)) return restore(ask(null))
        return Effect.flatMap(current, (requester) =>
          requester === null || isAccepted
            ? Effect.andThen(turn.release(1), restore(ask(requester)))
            : Effect.ensuring(restore(ask(requester)), turn.release(1))
        )
      })
    )

  const lend: Lend = (ask) =>
    Effect.flatMap(current, (requester) => (requester === null || isAccepted ? ask(requester) : inTurn(ask)))

  const note = Effect.fnUntraced(function* (requester: VatId, isRejected: boolean) {
    if (requester.value !== operator?.value || (isAccepted && !isRejected)) return
    isAccepted = !isRejected
    rejections = isRejected ? rejections + 1 : 0
    pausedUntilMs = rejections < maxRejections ? Number.NEGATIVE_INFINITY : (yield* monotonicMs) + pauseMs
    yield* measure
    if (rejections === maxRejections)
      yield* Effect.logError(
        `VIES rejected REQUESTER_VAT_ID ${maxRejections} times in a row, so the service sends it once an hour; answers have no consultation number until VIES accepts it`
      )
  })

  if (operator !== null) yield* measure
  return { lend, note }
})
