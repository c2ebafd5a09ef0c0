/** How long requests take at a fixed rate, whether or not earlier ones are answered, beside the baseline at the same rate. */
import { Array as Arr, Effect } from "effect"
import * as Sandbox from "#infra/sandbox/Sandbox.ts"
import { BenchOptions } from "#test/benchmarks/BenchOptions.ts"
import * as Load from "#test/benchmarks/load/Load.ts"
import * as ResultTable from "#test/benchmarks/load/ResultTable.ts"
import * as Rounds from "#test/benchmarks/load/Rounds.ts"
import * as Workload from "#test/benchmarks/load/Workload.ts"
import * as Report from "#test/benchmarks/Report.ts"
import * as Contenders from "#test/benchmarks/servers/Contenders.ts"

/** Enough to know the maximum; it is not a figure of its own here. */
const maximumRounds = 3
const sourceMs = 20

type Started = Effect.Success<ReturnType<typeof Contenders.start>>

/** Runs at half of the baseline's maximum rate, so that no run leaves a backlog for the next one. */
const measure = Effect.fnUntraced(function* (name: string, asked: Workload.Asked, { contenders }: Started) {
  const { rounds, seconds } = yield* BenchOptions
  const baseline = contenders.at(-1)?.subject
  if (baseline === undefined) return yield* Effect.die("There is always a baseline")
  const fastest = yield* Effect.forEach(Arr.range(1, maximumRounds), () => Workload.flatOut(baseline, asked))
  const half = Math.round(Report.median(fastest.map(Load.perSecondOf)) / 2)
  const turns = contenders.map(({ measured, name, subject }) => ({
    name,
    turn: Rounds.turn(measured(Workload.atRate(subject, asked.kinds, half, seconds * 1_000)))
  }))
  yield* Rounds.run(rounds, [turns.map(({ turn }) => turn)])
  const resultsOf = (wanted: Contenders.Name) => turns.find(({ name }) => name === wanted)?.turn.results ?? []
  return { name, half, fastest, turns, service: resultsOf("service"), baseline: resultsOf("baseline") }
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
      `${name}: p99 of how late the load generator itself was`,
      Report.median([...service, ...baseline].map(({ latenessMs }) => latenessMs.p99)),
      "ms"
    )
  ]
}

const rowsOf = ({ fastest, half, name, turns }: Measured): ReadonlyArray<ResultTable.Measured> => [
  { name: `${name}, Fastify as fast as it can`, results: fastest },
  ...turns.map((one) => ({ name: `${name} at ${half}/s, ${Contenders.titles[one.name]}`, results: one.turn.results }))
]

export const run = Effect.gen(function* () {
  const { rounds } = yield* BenchOptions
  const sandbox = yield* Sandbox.Sandbox
  yield* sandbox.reset
  yield* sandbox.configure({ latency_ms: sourceMs })
  const mix = yield* Workload.mix
  const started = yield* Effect.flatMap(Contenders.databases("latency"), (urls) => Contenders.start(urls, mix.kinds))
  const measured = [yield* measure("cached", yield* Workload.plain, started), yield* measure("mix", mix, started)]
  yield* sandbox.reset
  const report: Report.SectionReport = {
    section: "latency",
    how:
      `cached validations, and the mix of all kinds, at half of the baseline's maximum, each sent when it is due and measured from then; ` +
      `medians of ${rounds} alternating runs, ratios round by round`,
    figures: measured.flatMap(figuresOf),
    details: [ResultTable.withRuns(measured.flatMap(rowsOf))]
  }
  return report
})
