/**
 * Validations that are submitted and answered later, while the source answers: their cost beside that of live validations. With
 * `--service-root` the service is that of another checkout.
 */
import { Duration, Effect, MutableRef, type Redacted, Schedule, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import * as Postgres from "#infra/postgres/Postgres.ts"
import * as Sandbox from "#test/support/Sandbox.ts"
import { BenchOptions } from "#test/benchmarks/BenchOptions.ts"
import * as Load from "#test/benchmarks/load/Load.ts"
import * as ResultTable from "#test/benchmarks/load/ResultTable.ts"
import * as Rounds from "#test/benchmarks/load/Rounds.ts"
import * as Workload from "#test/benchmarks/load/Workload.ts"
import * as Report from "#test/benchmarks/Report.ts"
import { PostgresServer } from "#test/benchmarks/servers/PostgresServer.ts"
import * as Servers from "#test/benchmarks/servers/Servers.ts"
import * as Settled from "#test/benchmarks/servers/Settled.ts"

const sourceMs = 20
const rates = [100, 500] as const
/** Minimum duration of a load, because a p99 needs a thousand requests. */
const secondsMin = 8
const warmUpMs = 15_000

/** Returns the number of submissions without an answer. */
const findOpen = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const find = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({ open: Schema.Int }),
    execute: () => sql`SELECT count(*)::int AS open FROM vatproof.tasks WHERE closed_by IS NULL`
  })
  return (yield* find(undefined)).open
})

/** Waits until all submissions are answered. Returns the duration of the wait. */
const drain = (url: Redacted.Redacted) =>
  findOpen.pipe(
    Effect.repeat({ until: (open) => open === 0, schedule: Schedule.spaced("20 millis") }),
    Effect.timeout("2 minutes"),
    Effect.timed,
    Effect.provide(Postgres.layerAdministrator({ url, maxConnections: 1 }), { local: true }),
    Effect.map(([duration]) => Duration.toMillis(duration))
  )

/** The loads at one rate, and the time after each load of submissions until its last answer. */
const loadsAt = (rate: number, subject: Workload.Subject, url: Redacted.Redacted, durationMs: number) => {
  const backlogMs = MutableRef.make<ReadonlyArray<number>>([])
  const settled = <A, E, R>(load: Effect.Effect<A, E, R>) => Effect.tap(load, () => Settled.wait(url))
  const drained = Effect.flatMap(drain(url), (ms) => Effect.sync(() => MutableRef.update(backlogMs, (before) => [...before, ms])))
  const live = Rounds.series(settled(Workload.openLoop(subject, ["live"], rate, durationMs)))
  const submitted = Rounds.series(
    settled(Effect.tap(Workload.openLoop(subject, ["submission"], rate, durationMs), () => drained))
  )
  return { rate, live, submitted, backlogMs }
}

export const run = Effect.gen(function* () {
  const { other, rounds, seconds } = yield* BenchOptions
  const { database } = yield* PostgresServer
  const sandbox = yield* Sandbox.Sandbox
  yield* sandbox.reset
  yield* sandbox.configure({ latency_ms: sourceMs })
  const url = yield* database("submissions")
  const subject = yield* Workload.prepare(yield* Servers.service(url, other ?? undefined))
  const durationMs = Math.max(seconds, secondsMin) * 1_000
  yield* Workload.openLoop(subject, ["live"], 300, warmUpMs)
  yield* Workload.openLoop(subject, ["submission"], 200, warmUpMs)
  yield* drain(url)
  yield* Settled.wait(url)
  const loads = rates.map((rate) => loadsAt(rate, subject, url, durationMs))
  yield* Rounds.run(
    rounds,
    loads.map(({ live, submitted }) => [live, submitted])
  )
  yield* sandbox.reset
  const report: Report.SectionReport = {
    section: "submissions",
    how:
      `submissions that are answered later beside live validations, both about new VAT IDs; the source takes ${sourceMs} ms; ` +
      `medians of ${rounds} alternating runs, ratios per round`,
    figures: loads.flatMap(({ backlogMs, live, rate, submitted }) => [
      Report.atMost(
        `submission at ${rate}/s with its answer: processor time with Postgres, ÷ live`,
        Report.medianRatio(submitted.results, live.results, Load.totalCpuMicros),
        "×",
        1.5
      ),
      ...(rate === 100
        ? [Report.atMost(`p99 of submissions at ${rate}/s`, Report.median(submitted.results.map(Load.p99Of)), "ms", 60)]
        : [Report.plain(`p99 of submissions at ${rate}/s`, Report.median(submitted.results.map(Load.p99Of)), "ms")]),
      Report.atMost(`from the last submission at ${rate}/s to the last answer`, Report.median(backlogMs.current), "ms", 1_000)
    ]),
    details: [
      ResultTable.withRuns(
        loads.flatMap(({ live, rate, submitted }) => [
          { name: `live at ${rate}/s`, results: live.results },
          { name: `submissions at ${rate}/s`, results: submitted.results }
        ])
      )
    ]
  }
  return report
})
