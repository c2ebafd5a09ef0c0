/** Probes the sources in the background, and records changes of their state (rule 24). */
import { Effect, MutableRef, Option, Queue } from "effect"
import * as Worker from "#domain/concurrency/Worker.ts"
import { monotonicMs } from "#domain/concurrency/MonotonicTime.ts"
import {
  SourceDegraded,
  SourceRecovered,
  type SourceState,
  type SourceStatus,
  SourceLog,
  SourceUnavailable
} from "#domain/vat/Sources.ts"
import { type FailureReason, SourceFailure, type SourceName } from "#domain/vat/Verdict.ts"
import * as SourceMetrics from "#infra/sources/SourceMetrics.ts"

interface Probed {
  readonly source: SourceName
  readonly probe: Effect.Effect<void>
  readonly trouble: Effect.Effect<void>
  readonly status: Effect.Effect<SourceStatus & { readonly reason: FailureReason | null }>
}

/**
 * Interval between two checks of a source's state. A failed call starts a check at once. A check probes the source if its last probe is
 * 30 s old. While any source fails, every check probes: without live calls only a probe shows whether a source answers.
 */
const tickMs = 5_000
const restMs = 30_000
/** The shortest interval between probes, however many calls fail. */
const troubledMs = 1_000

/** Probes in the background until its scope closes. */
export const run = Effect.fnUntraced(function* (sources: ReadonlyArray<Probed>, replica: string) {
  const log = yield* SourceLog
  const silent = new Set<SourceName>()
  const watched = yield* Effect.forEach(sources, (source) =>
    Effect.map(Queue.sliding<void>(1), (alarms) => ({ ...source, alarms }))
  )

  /** Records whether a source answers. On its first failure, the other sources are probed at once. */
  const noteAnswers = (source: SourceName, answers: boolean) => {
    if (answers) silent.delete(source)
    else if (!silent.has(source)) {
      silent.add(source)
      for (const other of watched) if (other.source !== source) Queue.offerUnsafe(other.alarms, undefined)
    }
  }

  const watch = Effect.fnUntraced(function* (source: (typeof watched)[number]) {
    const recordedState = MutableRef.make<SourceState>("operational")
    const probedAt = MutableRef.make(Number.NEGATIVE_INFINITY)
    const check = Effect.fnUntraced(function* (troubled: boolean) {
      const now = yield* monotonicMs
      const due = recordedState.current === "operational" && silent.size === 0 ? restMs : tickMs
      if (now - probedAt.current >= (troubled ? troubledMs : due)) {
        MutableRef.set(probedAt, now)
        yield* source.probe
      }
      const { answers, reason, state } = yield* source.status
      noteAnswers(source.source, answers)
      yield* SourceMetrics.noteState(source.source, state)
      if (state === recordedState.current) return
      const event = eventOf(source.source, state, reason, replica)
      yield* log.record(source.source, event)
      MutableRef.set(recordedState, state)
      const line = `${source.source} is ${state}`
      const logged = state === "unavailable" ? Effect.logWarning(line) : Effect.logInfo(line)
      yield* Effect.annotateLogs(logged, { source: source.source, state, reason })
    })
    const nextCheck = Effect.raceFirst(source.trouble, Queue.take(source.alarms)).pipe(
      Effect.timeoutOption(tickMs),
      Effect.map(Option.isSome)
    )
    // The first check begins at once.
    yield* Queue.offer(source.alarms, undefined)
    const name = `The check of the source ${source.source}`
    yield* Worker.loop(name, Effect.flatMap(nextCheck, check), { afterFailure: troubledMs })
  })

  yield* Effect.forEach(watched, watch, { discard: true })
})

const eventOf = (source: SourceName, state: SourceState, reason: FailureReason | null, replica: string) => {
  const observed = { source, member_state: null, replica }
  switch (state) {
    case "operational":
      return SourceRecovered.make(observed)
    case "degraded":
      return SourceDegraded.make({ ...observed, reason })
    case "unavailable":
      return SourceUnavailable.make({ ...observed, reason })
  }
}

/** Returns the failure of a probe of VIES whose status page reports VIES as unavailable. */
export const saysUnavailable = () =>
  new SourceFailure({ source: "vies", reason: "unavailable", code: null, scope: "source", retry: "later" })
