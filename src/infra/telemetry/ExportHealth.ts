/** Tracks whether the collector accepts exports. Logs the first failure and the recovery; a metric counts all exports. */
import { Effect, MutableRef, Schedule } from "effect"
import * as Metrics from "#domain/kernel/Metrics.ts"

export type Signal = "traces" | "metrics" | "logs"

/** Labels: `vatproof.telemetry.signal` and `vatproof.outcome` (taken, lost). */
const exportsMade = Metrics.counter("vatproof.telemetry.exports", {
  unit: "{export}",
  description: "Exports of telemetry by outcome: taken by the collector, or lost"
})

export interface ExportHealth {
  /** Records how an export ended; `error` is undefined on success. Does not wait. */
  readonly note: (signal: Signal, error: Error | undefined) => void
}

const lookEvery = "10 seconds"

/** Logs changes until the scope closes. */
export const make = Effect.gen(function* () {
  const context = yield* Effect.context<never>()
  const failing = MutableRef.make<string | null>(null)
  const isFailing = MutableRef.make(false)

  const look = Effect.suspend(() => {
    const why = failing.current
    if ((why !== null) === isFailing.current) return Effect.void
    MutableRef.set(isFailing, why !== null)
    return why === null
      ? Effect.logInfo("The collector accepts telemetry again")
      : Effect.logWarning(`The collector does not accept telemetry (${why}); when the queue is full, new telemetry is lost`)
  })
  yield* Effect.forkScoped(Effect.repeat(look, Schedule.spaced(lookEvery)))

  const note: ExportHealth["note"] = (signal, error) => {
    MutableRef.set(failing, error === undefined ? null : `${signal}: ${error.message}`)
    const outcome = error === undefined ? "taken" : "lost"
    exportsMade({ "vatproof.telemetry.signal": signal, "vatproof.outcome": outcome }).updateUnsafe(1, context)
  }
  return { note } satisfies ExportHealth
})
