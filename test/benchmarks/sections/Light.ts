/**
 * Cost and latency of cached validations at low rates, where few requests share a round trip. Compares the service with the
 * baseline, and with the baseline on the event store Emmett.
 */
import { Effect } from "effect"
import { BenchOptions } from "#test/benchmarks/BenchOptions.ts"
import type * as Load from "#test/benchmarks/load/Load.ts"
import * as ResultTable from "#test/benchmarks/load/ResultTable.ts"
import * as Rounds from "#test/benchmarks/load/Rounds.ts"
import * as Workload from "#test/benchmarks/load/Workload.ts"
import * as Report from "#test/benchmarks/Report.ts"
import { PostgresServer } from "#test/benchmarks/servers/PostgresServer.ts"
import * as Servers from "#test/benchmarks/servers/Servers.ts"
import * as Settled from "#test/benchmarks/servers/Settled.ts"

/** Requests per second. */
const rates = [1, 10, 100, 300, 1_000]
/** The rate with documented limits. */
const limited = 300
/** Minimum number of requests of a run, so that a run at a low rate lasts longer. */
const minRequests = 20

const start = Effect.gen(function* () {
  const { database } = yield* PostgresServer
  const url = yield* database("light_service")
  const service = yield* Servers.service(url)
  const own = yield* Workload.prepare(service)
  const baselineOn = Effect.fnUntraced(function* (store: Servers.BaselineStore) {
    const server = yield* Servers.baseline(yield* database(`light_${store}`), own.keys, store)
    const baseline: { readonly subject: Workload.Subject } = { subject: { server, keys: own.keys, viesPath: null } }
    yield* Workload.fill(baseline.subject)
    yield* Workload.warmUp(baseline.subject, ["cached"])
    return baseline.subject
  })
  const contenders = [
    { name: "Vatproof", subject: own },
    { name: "Fastify", subject: yield* baselineOn("pg") },
    { name: "Fastify on Emmett", subject: yield* baselineOn("emmett") }
  ] as const
  yield* Settled.wait(url)
  return contenders
})

/** CPU time of the server and of Postgres per request, in microseconds. */
const cpuOf = (result: Load.LoadResult) => (result.cpuMicros["service"] ?? 0) + (result.cpuMicros["Postgres"] ?? 0)

export const run = Effect.gen(function* () {
  const { rounds, seconds } = yield* BenchOptions
  const contenders = yield* start
  const measured = rates.map((rate) => {
    const ms = Math.max(seconds, minRequests / rate) * 1_000
    return {
      rate,
      runs: contenders.map(({ name, subject }) => ({
        name,
        series: Rounds.series(Workload.openLoop(subject, ["cached"], rate, ms))
      }))
    }
  })
  yield* Rounds.run(
    rounds,
    measured.map(({ runs }) => runs.map(({ series }) => series))
  )
  const figures = measured.flatMap(({ rate, runs }) => {
    const [service, baseline, emmett] = runs.map(({ series }) => series.results)
    if (service === undefined || baseline === undefined || emmett === undefined) return []
    const cpu = Report.medianRatio(service, baseline, cpuOf)
    const p50 = Report.medianRatio(service, baseline, ({ latencyMs }) => latencyMs.p50)
    const figure = (name: string, value: number, limit: number) =>
      rate === limited ? Report.atMost(name, value, "×", limit) : Report.plain(name, value, "×")
    return [
      figure(`${rate}/s: processor time, service ÷ Fastify`, cpu, 2),
      figure(`${rate}/s: p50, service ÷ Fastify`, p50, 1.5),
      Report.plain(`${rate}/s: processor time, service ÷ Emmett`, Report.medianRatio(service, emmett, cpuOf), "×")
    ]
  })
  const report: Report.SectionReport = {
    section: "light",
    how: `cached validations at fixed rates, each sent and measured from its due time; processor time of server and Postgres together; medians of ${rounds} alternating runs, ratios per round`,
    figures,
    details: [
      ResultTable.medians(
        measured.flatMap(({ rate, runs }) =>
          runs.map(({ name, series }) => ({ name: `${rate}/s, ${name}`, results: series.results }))
        )
      )
    ]
  }
  return report
})
