/** Asks the sources how they are in the background, and records when that changes (DECISIONS 24). */
import { Clock, Effect, MutableRef, Result, Schedule } from "effect"
import {
  SourceDegraded,
  SourceRecovered,
  type SourceState,
  type SourceStatus,
  SourceLog,
  SourceUnavailable
} from "#domain/Sources.ts"
import { parse } from "#domain/VatId.ts"
import { type FailureReason, SourceFailure, type SourceName } from "#domain/Verdict.ts"

interface Probed {
  readonly source: SourceName
  readonly probe: Effect.Effect<void>
  readonly status: Effect.Effect<SourceStatus & { readonly reason: FailureReason | null }>
}

/** Every 5 s the states are compared; a source that is well is probed every 30 s only, one in trouble each time. */
const tick = "5 seconds"
const restMs = 30_000

/** Runs in the background for as long as its scope. */
export const run = Effect.fnUntraced(function* (sources: ReadonlyArray<Probed>, replica: string) {
  const log = yield* SourceLog

  const watch = Effect.fnUntraced(function* (source: Probed) {
    const known = MutableRef.make<SourceState>("operational")
    const probedAt = MutableRef.make(0)
    const turn = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      if (known.current !== "operational" || now - probedAt.current >= restMs) {
        MutableRef.set(probedAt, now)
        yield* source.probe
      }
      const { reason, state } = yield* source.status
      if (state === known.current) return
      const event = eventOf(source.source, state, reason, replica)
      yield* log.record(source.source, event)
      MutableRef.set(known, state)
      yield* Effect.logInfo(`${source.source} is ${state}`).pipe(Effect.annotateLogs({ source: source.source, state, reason }))
    })
    // A database that is away for a moment must not end the watch: the change is recorded at the next turn.
    yield* turn.pipe(
      Effect.catchTag("StoreUnavailable", () => Effect.void),
      Effect.repeat(Schedule.spaced(tick))
    )
  })

  yield* Effect.forEach(sources, (source) => Effect.forkScoped(watch(source)), { discard: true })
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

/** VIES answers its status question but says that it is not available. */
export const saysUnavailable = () =>
  new SourceFailure({ source: "vies", reason: "unavailable", code: null, scope: "source", retry: "later" })

/** Stands for "a German VAT ID" where only the member state matters. */
export const anyGermanVatId = Result.getOrThrow(parse("DE123456789"))
