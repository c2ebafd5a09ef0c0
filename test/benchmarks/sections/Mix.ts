/** Throughput and CPU time of each kind of request and of their mix, compared with the baseline. */
import { Array as Arr, Effect } from "effect"
import * as Sandbox from "#test/support/Sandbox.ts"
import { BenchOptions } from "#test/benchmarks/BenchOptions.ts"
import * as Load from "#test/benchmarks/load/Load.ts"
import * as RequestKinds from "#test/benchmarks/load/RequestKinds.ts"
import * as ResultTable from "#test/benchmarks/load/ResultTable.ts"
import * as Rounds from "#test/benchmarks/load/Rounds.ts"
import * as Workload from "#test/benchmarks/load/Workload.ts"
import * as Report from "#test/benchmarks/Report.ts"
import * as Contenders from "#test/benchmarks/servers/Contenders.ts"

const sourceMs = 20
/** Kinds of requests that are measured in a closed loop. */
const closedLoopKinds = ["cached", "spelled", "parameter", "anonymous", "usage", "malformed"] as const
/** Rates per second of live look-ups. They use an open loop, because the service limits the calls in flight per member state. */
const liveRates = [100, 500] as const
/** Minimum duration of live loads. CPU time has a resolution of 10 ms, so a shorter load is inaccurate. */
const liveSecondsMin = 4

/** Lower limits of requests per second, service ÷ baseline. */
const speedLimits: ReadonlyMap<string, number> = new Map([
  ["mix", 1.3],
  ["cached", 1.6],
  ["spelled", 1],
  ["parameter", 1],
  ["anonymous", 1],
  ["usage", 1]
])
/** Upper limits of the CPU time of server and Postgres, service ÷ baseline. */
const costLimits: ReadonlyMap<string, number> = new Map([
  ["malformed", 2.5],
  ...liveRates.map((rate) => [`live at ${rate}/s`, 2] as const)
])
/** Variants of cached validations, and the upper limit of their CPU time ÷ the CPU time of `cached`. */
const cachedVariants = ["spelled", "parameter", "anonymous"] as const
const cachedVariantLimit = 1.4

/** The results of one load on each server. */
interface Row {
  readonly name: string
  readonly isAtRate: boolean
  readonly results: Readonly<Record<Contenders.Name | "source", ReadonlyArray<Load.LoadResult>>>
}

type Started = Effect.Success<ReturnType<typeof Contenders.start>>

/** Returns a row of the report, and the loads that fill the row with results. */
const rowOf = <E, R>(
  name: string,
  { contenders }: Started,
  load: (subject: Workload.Subject) => Effect.Effect<Load.LoadResult, E, R>,
  source: Workload.Subject | null
) => {
  const runs = contenders.map(({ name, subject, thenSettle }) => ({ name, series: Rounds.series(thenSettle(load(subject))) }))
  const sourceSeries = source === null ? [] : [Rounds.series(load(source))]
  const resultsOf = (name: Contenders.Name) => runs.find((run) => run.name === name)?.series.results ?? []
  const row: Row = {
    name,
    isAtRate: source !== null,
    results: {
      service: resultsOf("service"),
      other: resultsOf("other"),
      baseline: resultsOf("baseline"),
      source: sourceSeries[0]?.results ?? []
    }
  }
  return { row, comparison: [...runs.map(({ series }) => series), ...sourceSeries] }
}

export const run = Effect.gen(function* () {
  const { mixConnections: connections, rounds, seconds } = yield* BenchOptions
  const sandbox = yield* Sandbox.Sandbox
  yield* sandbox.reset
  yield* sandbox.configure({ latency_ms: sourceMs })
  const mix = yield* Workload.mix
  const source = yield* Workload.source
  const started = yield* Effect.flatMap(Contenders.databases("mix"), (urls) => Contenders.start(urls, mix.kinds))

  const closedLoop = (name: string, kinds: Workload.Kinds) =>
    rowOf(name, started, (subject) => Workload.closedLoop(subject, { kinds, connections }), null)
  const liveMs = Math.max(seconds, liveSecondsMin) * 1_000
  const live = liveRates.map((rate) =>
    rowOf(`live at ${rate}/s`, started, (subject) => Workload.openLoop(subject, ["live"], rate, liveMs), source)
  )
  const loads = [closedLoop("mix", mix.kinds), ...closedLoopKinds.map((kind) => closedLoop(kind, [kind])), ...live]
  yield* Rounds.run(
    rounds,
    loads.map(({ comparison }) => comparison)
  )
  yield* sandbox.reset

  const rows = loads.map(({ row }) => row)
  const report: Report.SectionReport = {
    section: "mix",
    how:
      `each kind of request alone and all mixed (${weights}), ${connections} connections, the source takes ${sourceMs} ms; ` +
      `medians of ${rounds} alternating runs, ratios per round`,
    figures: figuresOf(rows),
    details: [ratioTable(rows), "", mixTable(rows), "", ResultTable.medians(rows.flatMap(measuredOf))]
  }
  return report
})

const weights = RequestKinds.mixed.map((name) => `${name} ${RequestKinds.kinds[name].weight}`).join(", ")

const figuresOf = (rows: ReadonlyArray<Row>) => [
  ...rows.flatMap(({ name, results: { baseline, service } }) => {
    const limit = speedLimits.get(name)
    if (limit === undefined) return []
    return [
      Report.atLeast(
        `${name}: requests/s, service ÷ Fastify`,
        Report.medianRatio(service, baseline, Load.perSecondOf),
        "×",
        limit
      )
    ]
  }),
  ...rows.flatMap(({ name, results: { baseline, service } }) => {
    const limit = costLimits.get(name)
    const ratio = Report.medianRatio(service, baseline, Load.totalCpuMicros)
    // Omits the figure on systems that do not report CPU time.
    if (limit === undefined || !Number.isFinite(ratio)) return []
    return [Report.atMost(`${name}: processor time with Postgres, service ÷ Fastify`, ratio, "×", limit)]
  }),
  ...cachedVariants.flatMap((name) => {
    const ratio = toCached(rows, name)
    if (!Number.isFinite(ratio)) return []
    return [Report.atMost(`${name}: processor time of the service, ÷ cached`, ratio, "×", cachedVariantLimit)]
  }),
  ...rows.flatMap(({ isAtRate, name, results }) => {
    if (!isAtRate) return []
    const added = (of: ReadonlyArray<Load.LoadResult>) =>
      Report.median(Arr.zipWith(of, results.source, (one, source) => one.latencyMs.p50 - source.latencyMs.p50))
    return [
      Report.plain(`${name}: p50 added to the source's own, service`, added(results.service), "ms"),
      Report.plain(`${name}: p50 added to the source's own, Fastify`, added(results.baseline), "ms")
    ]
  })
]

/** Returns the service's CPU time per request of a kind, divided by its CPU time per request of `cached`. */
const toCached = (rows: ReadonlyArray<Row>, name: string) => {
  const serviceOf = (wanted: string) => rows.find((row) => row.name === wanted)?.results.service ?? []
  return Report.medianRatio(serviceOf(name), serviceOf("cached"), Load.serviceCpuMicros)
}

/** Ratios of service ÷ baseline, and of other build ÷ service. */
const ratioTable = (rows: ReadonlyArray<Row>) => {
  const toBaseline =
    (of: (result: Load.LoadResult) => number) =>
    ({ results: { baseline, service } }: Row) =>
      Report.medianRatio(service, baseline, of)
  const toOther =
    (of: (result: Load.LoadResult) => number) =>
    ({ results: { other, service } }: Row) =>
      Report.medianRatio(other, service, of)
  const hasOther = rows.some(({ results: { other } }) => other.length > 0)
  return Report.details(rows, {
    "service ÷ Fastify": ({ name }) => name,
    "requests/s": (row) => (row.isAtRate ? "-" : toBaseline(Load.perSecondOf)(row)),
    p50: toBaseline(Load.p50Of),
    p99: toBaseline(Load.p99Of),
    "processor time with Postgres": toBaseline(Load.totalCpuMicros),
    "service ÷ cached": ({ name }) => toCached(rows, name),
    ...(hasOther
      ? {
          "other ÷ service: requests/s": (row: Row) => (row.isAtRate ? "-" : toOther(Load.perSecondOf)(row)),
          "p99 ": toOther(Load.p99Of),
          "processor time with Postgres ": toOther(Load.totalCpuMicros),
          "of the service alone": toOther(Load.serviceCpuMicros)
        }
      : {}),
    "requests/s, each round": ({ isAtRate, results: { baseline, service } }) =>
      isAtRate ? "-" : Report.ratios(service, baseline, Load.perSecondOf).map(Report.digits).join("  ")
  })
}

/** Latencies of each kind within the mix. */
const mixTable = (rows: ReadonlyArray<Row>) => {
  const mixed = rows.find(({ name }) => name === "mix")?.results
  const of = (name: Contenders.Name, value: (summary: Load.Summary) => number) => (kind: RequestKinds.Name) =>
    Report.median((mixed?.[name] ?? []).flatMap(({ byKind }) => byKind[kind] ?? []).map(value))
  return Report.details(RequestKinds.mixed, {
    "in the mix": (kind) => kind,
    "Vatproof p50 ms": of("service", ({ p50 }) => p50),
    "p99 ms": of("service", ({ p99 }) => p99),
    "Fastify p50 ms": of("baseline", ({ p50 }) => p50),
    "p99 ms ": of("baseline", ({ p99 }) => p99)
  })
}

const measuredOf = ({ name, results }: Row): ReadonlyArray<ResultTable.Measured> =>
  [
    { name: `${name}, ${Contenders.titles.service}`, results: results.service },
    { name: `${name}, ${Contenders.titles.other}`, results: results.other },
    { name: `${name}, ${Contenders.titles.baseline}`, results: results.baseline },
    { name: `${name}, the source itself`, results: results.source }
  ].filter(({ results }) => results.length > 0)
