/** How long a cached validation takes at half of what the service can do at most, whether or not earlier ones are answered. */
import { Array as Arr, Effect } from "effect"
import { BenchOptions } from "#test/benchmarks/BenchOptions.ts"
import * as Load from "#test/benchmarks/load/Load.ts"
import * as Mix from "#test/benchmarks/load/Mix.ts"
import * as Report from "#test/benchmarks/Report.ts"
import { PostgresServer } from "#test/benchmarks/servers/PostgresServer.ts"
import * as Servers from "#test/benchmarks/servers/Servers.ts"
import * as Settled from "#test/benchmarks/servers/Settled.ts"

/** Enough to know the maximum; it is not a figure of its own here. */
const maximumRounds = 3

export const run = Effect.gen(function* () {
  const { rounds } = yield* BenchOptions
  const { database } = yield* PostgresServer
  const url = yield* database("latency")
  const service = yield* Servers.service(url)
  const keys = yield* Mix.prepare(service)
  const flatOut = Effect.tap(Mix.flatOut(service, keys), () => Settled.until(url))
  const fastest = yield* Effect.forEach(Arr.range(1, maximumRounds), () => flatOut)
  const half = Math.round(Report.median(fastest.map(Load.perSecondOf)) / 2)
  // At half of that the service keeps up, so that nothing is left over from one run to the next.
  const results = yield* Effect.forEach(Arr.range(1, rounds), () => Mix.atRate(service, keys, half))
  const of = (value: (result: Load.LoadResult) => number) => Report.median(results.map(value))
  const report: Report.SectionReport = {
    section: "latency",
    how:
      `${half} cached validations a second, half of the maximum, each sent when it is due and measured from then; ` +
      `medians of ${rounds} runs`,
    figures: [
      Report.atMost(
        "p50",
        of(({ latencyMs }) => latencyMs.p50),
        "ms",
        2
      ),
      Report.atMost(
        "p99",
        of(({ latencyMs }) => latencyMs.p99),
        "ms",
        10
      ),
      Report.plain(
        "p99 of how late the load generator itself was",
        of(({ latenessMs }) => latenessMs.p99),
        "ms"
      )
    ],
    details: [
      Mix.table([
        { name: "as fast as it can", results: fastest },
        { name: "at half of that", results }
      ])
    ]
  }
  return report
})
