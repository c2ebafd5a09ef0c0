/** Tracks whether the collector accepts telemetry. Logs the first failure of any signal and the recovery of all signals. */
import { Effect, Schedule } from "effect"
import * as Worker from "#domain/concurrency/Worker.ts"
import * as Metrics from "#domain/telemetry/Metrics.ts"

const signals = ["traces", "metrics", "logs"] as const
export type Signal = (typeof signals)[number]

/** Labels: `vatproof.telemetry.signal` and `vatproof.outcome` (taken, lost). */
const exportsMade = Metrics.counter(
  "vatproof.telemetry.exports",
  { unit: "{export}", description: "Exports of telemetry by outcome: taken by the collector, or lost" },
  { "vatproof.telemetry.signal": signals, "vatproof.outcome": ["taken", "lost"] }
)

export interface ExportHealth {
  /** Records how an export ended; `error` is undefined on success. Does not wait. */
  readonly note: (signal: Signal, error: Error | undefined) => void
}

const pollEvery = "10 seconds"

/** Logs outages and recoveries of the collector until the scope closes. */
export const make = Effect.gen(function* () {
  const context = yield* Effect.context<never>()
  /** The error of the newest export of each signal that failed. */
  const failures = new Map<Signal, string>()
  let isFailing = false

  const look = Effect.suspend(() => {
    if (isFailing === failures.size > 0) return Effect.void
    isFailing = !isFailing
    const reasons = Array.from(failures, ([signal, message]) => `${signal}: ${message}`).join("; ")
    return isFailing
      ? Effect.logWarning(`The collector does not accept telemetry (${reasons}); when the queue is full, new telemetry is lost`)
      : Effect.logInfo("The collector accepts telemetry again")
  })
  yield* Worker.loop("Reporting the collector of telemetry", look, { schedule: Schedule.spaced(pollEvery) })

  const note: ExportHealth["note"] = (signal, error) => {
    if (error === undefined) failures.delete(signal)
    else failures.set(signal, error.message)
    const outcome = error === undefined ? "taken" : "lost"
    exportsMade({ "vatproof.telemetry.signal": signal, "vatproof.outcome": outcome }).updateUnsafe(1, context)
  }
  return { note } satisfies ExportHealth
})
