/** Whether the collector takes what is sent to it. A failure is told once, and so is its end; in between a metric counts. */
import { Effect, MutableRef, Schedule } from "effect"
import * as Metrics from "#domain/kernel/Metrics.ts"

export type Signal = "traces" | "metrics" | "logs"

/** By `vatproof.telemetry.signal` and `vatproof.outcome` (taken, lost). */
const exportsMade = Metrics.counter("vatproof.telemetry.exports", {
  unit: "{export}",
  description: "Exports of telemetry by whether the collector took them"
})

export interface ExportHealth {
  /** Notes how an export ended; `error` is undefined if it was taken. It does not wait. */
  readonly note: (signal: Signal, error: Error | undefined) => void
}

const lookEvery = "10 seconds"

/** Tells changes in the log for as long as its scope. */
export const make = Effect.gen(function* () {
  const context = yield* Effect.context<never>()
  const failing = MutableRef.make<string | null>(null)
  const told = MutableRef.make(false)

  const look = Effect.suspend(() => {
    const why = failing.current
    if ((why !== null) === told.current) return Effect.void
    MutableRef.set(told, why !== null)
    return why === null
      ? Effect.logInfo("The collector takes telemetry again")
      : Effect.logWarning(`The collector does not take telemetry (${why}); what waits is dropped when there is too much of it`)
  })
  yield* Effect.forkScoped(Effect.repeat(look, Schedule.spaced(lookEvery)))

  const note: ExportHealth["note"] = (signal, error) => {
    MutableRef.set(failing, error === undefined ? null : `${signal}: ${error.message}`)
    const outcome = error === undefined ? "taken" : "lost"
    exportsMade({ "vatproof.telemetry.signal": signal, "vatproof.outcome": outcome }).updateUnsafe(1, context)
  }
  return { note } satisfies ExportHealth
})
