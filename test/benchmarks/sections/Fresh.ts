/** Compares latency in the first seconds of a new service and database with the steady state. */
import { Array as Arr, Effect } from "effect"
import * as Sandbox from "#test/support/Sandbox.ts"
import { BenchOptions } from "#test/benchmarks/BenchOptions.ts"
import type * as Load from "#test/benchmarks/load/Load.ts"
import * as Workload from "#test/benchmarks/load/Workload.ts"
import * as Report from "#test/benchmarks/Report.ts"
import { PostgresServer } from "#test/benchmarks/servers/PostgresServer.ts"
import * as Servers from "#test/benchmarks/servers/Servers.ts"

/** The limits do not apply to the first seconds, in which V8 compiles the code. */
const warmUpSeconds = 2
const sourceMs = 20
/** Upper limit of the p99 of the slowest second ÷ the p99 of the steady state. */
const ratioLimit = 10

/** Measures a service that has just migrated, with new keys and a filled cache. */
const measure = Effect.fnUntraced(function* (name: string, shape: Workload.Shape) {
  const { freshSeconds } = yield* BenchOptions
  const { database } = yield* PostgresServer
  const subject = yield* Workload.filled(yield* Servers.service(yield* database(`fresh_${name}`)))
  const { bySecond } = yield* Workload.closedLoopFromStart(subject, shape, freshSeconds * 1_000)
  return { name, bySecond }
}, Effect.scoped)

/** Returns the median p99 of the second half of the run. */
const steadyP99 = (bySecond: ReadonlyArray<Load.Summary>) =>
  Report.median(bySecond.slice(Math.ceil(bySecond.length / 2)).map(({ p99 }) => p99))

export const run = Effect.gen(function* () {
  const { freshSeconds } = yield* BenchOptions
  const sandbox = yield* Sandbox.Sandbox
  yield* sandbox.reset
  yield* sandbox.configure({ latency_ms: sourceMs })
  const measured = [yield* measure("cached", yield* Workload.cached), yield* measure("mix", yield* Workload.mix)]
  yield* sandbox.reset
  const columns = measured.flatMap(({ bySecond, name }) => [
    [`${name}: requests/s`, (second: number) => bySecond[second]?.answered ?? 0] as const,
    [`${name}: p99 ms`, (second: number) => bySecond[second]?.p99 ?? 0] as const
  ])
  const seconds = Arr.range(0, Math.max(...measured.map(({ bySecond }) => bySecond.length)) - 1)
  const report: Report.SectionReport = {
    section: "fresh",
    how:
      `a service that has just started and migrated, with ${Workload.keyCount} keys and ${Workload.vatIds.length} answers in its cache, under ` +
      `full load from its first second for ${freshSeconds} s; the first ${warmUpSeconds} s, in which V8 compiles its code, have no limit`,
    figures: measured.flatMap(({ bySecond, name }) => {
      const steady = steadyP99(bySecond)
      const worst = Math.max(...bySecond.slice(warmUpSeconds).map(({ p99 }) => p99))
      return [
        Report.atMost(`${name}: p99 of the slowest second ÷ steady state`, worst / steady, "×", ratioLimit),
        Report.plain(`${name}: p99 of the steady state (median of the last half)`, steady, "ms")
      ]
    }),
    details: [
      Report.details(seconds, {
        second: (second) => String(second + 1),
        ...Object.fromEntries(columns)
      })
    ]
  }
  return report
})
