/** Latency of requests at a fixed rate (open loop), compared with the baseline at the same rate. */
import { Array as Arr, Effect } from "effect"
import * as Sandbox from "#test/support/Sandbox.ts"
import { BenchOptions } from "#test/benchmarks/BenchOptions.ts"
import * as Load from "#test/benchmarks/load/Load.ts"
import * as ResultTable from "#test/benchmarks/load/ResultTable.ts"
import * as Rounds from "#test/benchmarks/load/Rounds.ts"
import * as Workload from "#test/benchmarks/load/Workload.ts"
import * as Report from "#test/benchmarks/Report.ts"
import * as Contenders from "#test/benchmarks/servers/Contenders.ts"

/** Number of runs that find the baseline's maximum rate. */
const maximumRounds = 3
const sourceMs = 20

type Started = Effect.Success<ReturnType<typeof Contenders.start>>

/** Loads each server at half of the baseline's maximum rate, so that no run leaves a backlog for the next run. */
const measure = Effect.fnUntraced(function* (name: string, shape: Workload.Shape, { contenders }: Started) {
  const { rounds, seconds } = yield* BenchOptions
  const baseline = contenders.at(-1)?.subject
  if (baseline === undefined) return yield* Effect.die("The benchmark has no baseline server")
  const fastest = yield* Effect.forEach(Arr.range(1, maximumRounds), () => Workload.closedLoop(baseline, shape))
  const half = Math.round(Report.median(fastest.map(Load.perSecondOf)) / 2)
  const runs = contenders.map(({ name, subject, thenSettle }) => ({
    name,
    series: Rounds.series(thenSettle(Workload.openLoop(subject, shape.kinds, half, seconds * 1_000)))
  }))
  yield* Rounds.run(rounds, [runs.map(({ series }) => series)])
  const resultsOf = (wanted: Contenders.Name) => runs.find(({ name }) => name === wanted)?.series.results ?? []
  return { name, half, fastest, runs, service: resultsOf("service"), baseline: resultsOf("baseline") }
})

type Measured = Effect.Success<ReturnType<typeof measure>>

const figuresOf = ({ baseline, name, service }: Measured) => {
  const ratio = (of: (summary: Load.Summary) => number) => Report.medianRatio(service, baseline, ({ latencyMs }) => of(latencyMs))
  return [
    Report.atMost(
      `${name}: p50, service ÷ Fastify`,
      ratio(({ p50 }) => p50),
      "×",
      1
    ),
    Report.atMost(
      `${name}: p99, service ÷ Fastify`,
      ratio(({ p99 }) => p99),
      "×",
      1
    ),
    Report.plain(
      `${name}: p99 of the load generator's own delay`,
      Report.median([...service, ...baseline].map(({ latenessMs }) => latenessMs.p99)),
      "ms"
    )
  ]
}

const rowsOf = ({ fastest, half, name, runs }: Measured): ReadonlyArray<ResultTable.Measured> => [
  { name: `${name}, Fastify at its maximum rate`, results: fastest },
  ...runs.map((run) => ({ name: `${name} at ${half}/s, ${Contenders.titles[run.name]}`, results: run.series.results }))
]

export const run = Effect.gen(function* () {
  const { rounds } = yield* BenchOptions
  const sandbox = yield* Sandbox.Sandbox
  yield* sandbox.reset
  yield* sandbox.configure({ latency_ms: sourceMs })
  const mix = yield* Workload.mix
  const started = yield* Effect.flatMap(Contenders.databases("latency"), (urls) => Contenders.start(urls, mix.kinds))
  const measured = [yield* measure("cached", yield* Workload.cached, started), yield* measure("mix", mix, started)]
  yield* sandbox.reset
  const report: Report.SectionReport = {
    section: "latency",
    how:
      `cached validations, and the mix of all kinds, at half of the baseline's maximum rate, each sent and measured from its due time; ` +
      `medians of ${rounds} alternating runs, ratios per round`,
    figures: measured.flatMap(figuresOf),
    details: [ResultTable.withRuns(measured.flatMap(rowsOf))]
  }
  return report
})
