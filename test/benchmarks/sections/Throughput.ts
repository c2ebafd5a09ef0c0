/** How many cached validations a second: beside a service that only inserts, and beside one that does nothing. */
import { Array as Arr, Effect, type Redacted } from "effect"
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
  const { connections, full, rounds } = yield* BenchOptions
  const { database } = yield* PostgresServer
  const urls = { service: yield* database("service"), baseline: yield* database("baseline") }
  const results: Record<Name, Array<Load.LoadResult>> = { service: [], baseline: [], bare: [] }
  const memoryMb: Array<number> = []
  let exported = 0

  const measure = Effect.fnUntraced(function* (round: number, { keys, servers }: Effect.Success<ReturnType<typeof start>>) {
    // Another order each time, so that none always follows the same one.
    const order = [...names.slice(round % names.length), ...names.slice(0, round % names.length)]
    for (const name of order) {
      results[name].push(yield* Mix.flatOut(servers[name], keys))
      // What the service does after the answers, it has to do on its own time.
      if (name === "service") yield* Settled.until(urls.service)
    }
    memoryMb.push(ProcessorTime.memoryMb(servers.service.pid, "VmHWM"))
  })

  const inOrder = Arr.makeBy(rounds, (round) => round)
  // One process may be a third slower than the next of the same program: where there is time for it, each round has its own.
  for (const group of full ? Arr.chunksOf(inOrder, 1) : [inOrder]) {
    yield* Effect.scoped(
      Effect.gen(function* () {
        const subjects = yield* start(urls)
        yield* Effect.forEach(group, (round) => measure(round, subjects), { discard: true })
        exported += yield* subjects.servers.service.exports
      })
    )
  }
  // Round by round, so that what disturbs the machine for a while disturbs both sides of a ratio.
  const ratio = (one: Name, other: Name) =>
    Report.median(Arr.zipWith(results[one], results[other], (a, b) => Load.perSecondOf(a) / Load.perSecondOf(b)))
  const processorTime = (name: Name) =>
    Report.median(results[name].map(({ cpuMicros }) => (cpuMicros["service"] ?? 0) + (cpuMicros["Postgres"] ?? 0)))
  const othersShare = Report.median(
    names.flatMap((name) =>
      results[name].map((result) => ((result.cpuMicros[ProcessorTime.elsewhere] ?? 0) * Load.perSecondOf(result)) / 1e6)
    )
  )
  const report: Report.SectionReport = {
    section: "throughput",
    how:
      `cached validations with ${Mix.keyCount} keys and ${Mix.vatIds.length} VAT IDs, ${connections} connections, ` +
      `medians of ${rounds} alternating runs${full ? ", each in processes of its own" : ""}; ` +
      `telemetry exported ${exported} times meanwhile`,
    figures: [
      Report.atLeast("service ÷ Fastify with one INSERT", ratio("service", "baseline"), "×", 2),
      Report.atLeast("service ÷ bare node:http", 100 * ratio("service", "bare"), "%", 25),
      Report.plain("processor time with Postgres, service ÷ Fastify", processorTime("service") / processorTime("baseline"), "×"),
      Report.atMost("memory of the service, at most", Math.max(...memoryMb), "MB", 400),
      Report.plain("processors that were busy with something else", othersShare, `of ${cpus().length}`)
    ],
    details: [Mix.table(names.map((name) => ({ name: titles[name], results: results[name] })))]
  }
  return report
})

/** All three, warmed up. */
const start = Effect.fnUntraced(function* (urls: { readonly service: Redacted.Redacted; readonly baseline: Redacted.Redacted }) {
  const service = yield* Servers.service(urls.service)
  const keys = yield* Mix.prepare(service)
  const baseline = yield* Servers.baseline(urls.baseline, keys)
  const bare = yield* Servers.bare(service, Mix.vatIds[0], keys[0])
  yield* Mix.warmUp(baseline, keys, "4 seconds")
  yield* Mix.warmUp(bare, keys, "1 second")
  return { keys, servers: { service, baseline, bare } }
})

const titles = { service: "Vatproof", baseline: "Fastify, one INSERT", bare: "bare node:http" }
const names = Arr.make("service" as const, "baseline" as const, "bare" as const)
type Name = (typeof names)[number]
