/** Cached validations per second, compared with the baseline and with bare `node:http`. */
import { Array as Arr, Effect } from "effect"
import { cpus } from "node:os"
import { BenchOptions } from "#test/benchmarks/BenchOptions.ts"
import * as Load from "#test/benchmarks/load/Load.ts"
import * as ResultTable from "#test/benchmarks/load/ResultTable.ts"
import * as Rounds from "#test/benchmarks/load/Rounds.ts"
import * as Workload from "#test/benchmarks/load/Workload.ts"
import * as ProcessorTime from "#test/benchmarks/ProcessorTime.ts"
import * as Report from "#test/benchmarks/Report.ts"
import * as Contenders from "#test/benchmarks/servers/Contenders.ts"
import * as Servers from "#test/benchmarks/servers/Servers.ts"

const kinds: Workload.Kinds = ["cached"]
/** Number of connections of a second measurement. */
const fewConnections = 128

type Results = Record<Contenders.Name | "bare", Array<Load.LoadResult>>

export const run = Effect.gen(function* () {
  const { connections, full, rounds } = yield* BenchOptions
  const urls = yield* Contenders.databases("throughput")
  const over = Arr.dedupe([connections, fewConnections]).map((count) => {
    const results: Results = { service: [], other: [], baseline: [], bare: [] }
    return { count, results }
  })
  const memoryMb: Array<number> = []
  let exported = 0

  const measure = Effect.fnUntraced(function* (numbers: ReadonlyArray<number>) {
    const { bare, contenders, service } = yield* start(urls)
    const comparisons = over.map(({ count, results }) => [
      ...contenders.map(({ name, subject, thenSettle }) => ({
        load: thenSettle(Workload.closedLoop(subject, { kinds, connections: count })),
        results: results[name]
      })),
      { load: Workload.closedLoop(bare, { kinds, connections: count }), results: results.bare }
    ])
    yield* Effect.forEach(numbers, (number) => Rounds.round(number, comparisons), { discard: true })
    memoryMb.push(ProcessorTime.memoryMb(service.pid, "VmHWM"))
    exported += yield* service.exports
  })

  const inOrder = Arr.makeBy(rounds, (round) => round)
  // Processes of the same program differ in speed by up to a third, so with --full each round starts new ones.
  for (const group of full ? Arr.chunksOf(inOrder, 1) : [inOrder]) yield* Effect.scoped(measure(group))
  const report: Report.SectionReport = {
    section: "throughput",
    how:
      `cached validations with ${Workload.keyCount} keys and ${Workload.vatIds.length} VAT IDs, ` +
      `medians of ${rounds} alternating runs${full ? ", each in processes of its own" : ""}; ` +
      `telemetry exported ${exported} times meanwhile`,
    figures: [
      ...over.flatMap(({ count, results }) => ratiosOver(count, results, count === connections)),
      Report.atMost("memory of the service, maximum", Math.max(...memoryMb), "MB", 400),
      Report.plain("CPUs used by other programs", othersShare(over.map(({ results }) => results)), `of ${cpus().length}`)
    ],
    details: [
      ResultTable.withRuns(
        over.flatMap(({ count, results }) =>
          names.flatMap((name) =>
            results[name].length === 0 ? [] : [{ name: `${titles[name]}, ${count} connections`, results: results[name] }]
          )
        )
      )
    ]
  }
  return report
})

const ratiosOver = (count: number, { bare, baseline, other, service }: Results, isLimited: boolean) => {
  const toBaseline = Report.medianRatio(service, baseline, Load.perSecondOf)
  const toBare = 100 * Report.medianRatio(service, bare, Load.perSecondOf)
  const names = {
    baseline: `${count} connections: service ÷ Fastify (the aim is 2 ×)`,
    bare: `${count} connections: service ÷ bare node:http`
  }
  return [
    isLimited ? Report.atLeast(names.baseline, toBaseline, "×", 1.6) : Report.plain(names.baseline, toBaseline, "×"),
    isLimited ? Report.atLeast(names.bare, toBare, "%", 25) : Report.plain(names.bare, toBare, "%"),
    Report.plain(
      `${count} connections: processor time with Postgres, service ÷ Fastify`,
      Report.medianRatio(service, baseline, Load.totalCpuMicros),
      "×"
    ),
    ...(other.length === 0
      ? []
      : [
          Report.plain(`${count} connections: other build ÷ service`, Report.medianRatio(other, service, Load.perSecondOf), "×"),
          Report.plain(
            `${count} connections: processor time with Postgres, other build ÷ service`,
            Report.medianRatio(other, service, Load.totalCpuMicros),
            "×"
          )
        ])
  ]
}

const othersShare = (all: ReadonlyArray<Results>) =>
  Report.median(
    all
      .flatMap((results) => names.flatMap((name) => results[name]))
      .map((result) => ((result.cpuMicros[ProcessorTime.otherProcesses] ?? 0) * Load.perSecondOf(result)) / 1e6)
  )

/** Starts all servers and warms them up. */
const start = Effect.fnUntraced(function* (urls: Effect.Success<ReturnType<typeof Contenders.databases>>) {
  const { contenders, service, subject } = yield* Contenders.start(urls, kinds)
  const bare: Workload.Subject = { ...subject, server: yield* Servers.bare(service, Workload.vatIds[0], subject.keys[0]) }
  yield* Workload.warmUp(bare, kinds)
  return { service, contenders, bare }
})

const titles = { ...Contenders.titles, bare: "bare node:http" }
const names = ["service", "other", "baseline", "bare"] as const
