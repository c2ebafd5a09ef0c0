/** How many cached validations a second: beside a service that only inserts, and beside one that does nothing. */
import { Array as Arr, Effect } from "effect"
import { cpus } from "node:os"
import { BenchOptions } from "#test/benchmarks/BenchOptions.ts"
import * as Load from "#test/benchmarks/load/Load.ts"
import * as Mix from "#test/benchmarks/load/Mix.ts"
import * as ProcessorTime from "#test/benchmarks/ProcessorTime.ts"
import * as Report from "#test/benchmarks/Report.ts"
import { PostgresServer } from "#test/benchmarks/servers/PostgresServer.ts"
import * as Servers from "#test/benchmarks/servers/Servers.ts"
import * as Settled from "#test/benchmarks/servers/Settled.ts"

export const run = Effect.gen(function* () {
  const { connections, rounds } = yield* BenchOptions
  const { database } = yield* PostgresServer
  const url = yield* database("service")
  const service = yield* Servers.service(url)
  const keys = yield* Mix.prepare(service)
  const baseline = yield* Servers.baseline(yield* database("baseline"), keys)
  const bare = yield* Servers.bare(service, Mix.vatIds[0], keys[0])
  yield* Mix.warmUp(baseline, keys)
  yield* Mix.warmUp(bare, keys)
  const subjects = { service, baseline, bare }
  const results: Record<keyof typeof subjects, Array<Load.LoadResult>> = { service: [], baseline: [], bare: [] }

  const measure = Effect.fnUntraced(function* (name: keyof typeof subjects) {
    results[name].push(yield* Mix.flatOut(subjects[name], keys))
    // What the service does after the answers, it has to do on its own time.
    if (name === "service") yield* Settled.until(url)
  })

  for (let round = 0; round < rounds; round += 1) {
    // Another order each time, so that none always follows the same one.
    const order = [...names.slice(round % names.length), ...names.slice(0, round % names.length)]
    yield* Effect.forEach(order, measure, { discard: true })
  }
  // Round by round, so that what disturbs the machine for a while disturbs both sides of a ratio.
  const ratio = (one: keyof typeof subjects, other: keyof typeof subjects) =>
    Report.median(Arr.zipWith(results[one], results[other], (a, b) => Load.perSecondOf(a) / Load.perSecondOf(b)))
  const processorTime = (name: keyof typeof subjects) =>
    Report.median(results[name].map(({ cpuMicros }) => (cpuMicros["service"] ?? 0) + (cpuMicros["Postgres"] ?? 0)))
  const othersShare = Report.median(
    names.flatMap((name) =>
      results[name].map((result) => ((result.cpuMicros[Load.others] ?? 0) * Load.perSecondOf(result)) / 1e6)
    )
  )
  const report: Report.SectionReport = {
    section: "throughput",
    how:
      `cached validations with ${Mix.keyCount} keys and ${Mix.vatIds.length} VAT IDs, ${connections} connections, ` +
      `medians of ${rounds} alternating runs; telemetry exported ${yield* service.exports} times meanwhile`,
    figures: [
      Report.atLeast("service ÷ Fastify with one INSERT", ratio("service", "baseline"), "×", 2),
      Report.atLeast("service ÷ bare node:http", 100 * ratio("service", "bare"), "%", 25),
      Report.plain("processor time with Postgres, service ÷ Fastify", processorTime("service") / processorTime("baseline"), "×"),
      Report.atMost("memory of the service, at most", ProcessorTime.memoryMb(service.pid, "VmHWM"), "MB", 400),
      Report.plain("processors that were busy with something else", othersShare, `of ${cpus().length}`)
    ],
    details: [Mix.table(names.map((name) => ({ name: titles[name], results: results[name] })))]
  }
  return report
})

const titles = { service: "Vatproof", baseline: "Fastify, one INSERT", bare: "bare node:http" }
const names = Arr.make("service" as const, "baseline" as const, "bare" as const)
