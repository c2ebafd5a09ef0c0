/** The main load: cached validations of 1,000 VAT IDs by 16 keys. */
import { Array as Arr, Duration, Effect } from "effect"
import { BenchOptions } from "#test/benchmarks/BenchOptions.ts"
import * as Load from "#test/benchmarks/load/Load.ts"
import * as Report from "#test/benchmarks/Report.ts"
import * as Servers from "#test/benchmarks/servers/Servers.ts"

export const keyCount = 16

/** Austrian ones that are none of the sandbox's magic numbers. */
export const vatIds = Arr.makeBy(1_000, (index) => `ATU10${100_000 + index * 7}`)

export type Keys = Arr.NonEmptyReadonlyArray<string>

const planOf = (server: Servers.Server, keys: Keys, connections: number): Load.LoadPlan => ({
  port: server.port,
  vatIds,
  keys,
  connections,
  warmUpMs: 0,
  durationMs: 0,
  perSecond: null,
  requests: null,
  viesPath: null,
  watched: server.watched
})

/** Fresh keys, and all VAT IDs in the cache of a service. */
export const prepare = Effect.fnUntraced(function* (server: Servers.Server) {
  const keys = yield* Servers.register(server, keyCount)
  // As many at a time as the service asks a register at once.
  yield* Load.run({ ...planOf(server, keys, 10), requests: vatIds.length })
  yield* warmUp(server, keys, "4 seconds")
  return keys
})

/** Until the code has run often enough to be compiled. */
export const warmUp = (server: Servers.Server, keys: Keys, duration: Duration.Input) =>
  Load.run({ ...planOf(server, keys, 64), durationMs: Duration.toMillis(duration) })

const warmUpMs = 500

/** As many requests as there are answers. */
export const flatOut = Effect.fnUntraced(function* (server: Servers.Server, keys: Keys) {
  const { seconds } = yield* BenchOptions
  return yield* flatOutFor(server, keys, seconds * 1_000)
})

export const flatOutFor = Effect.fnUntraced(function* (server: Servers.Server, keys: Keys, durationMs: number) {
  const { connections } = yield* BenchOptions
  return yield* Load.run({ ...planOf(server, keys, connections), warmUpMs, durationMs })
})

/** As many requests as somebody sends who does not wait for answers. */
export const atRate = Effect.fnUntraced(function* (server: Servers.Server, keys: Keys, perSecond: number) {
  const { seconds } = yield* BenchOptions
  return yield* Load.run({ ...planOf(server, keys, openConnections), warmUpMs, durationMs: seconds * 1_000, perSecond })
})

/** Enough for none to be waited for, unless the service has fallen behind for good. */
const openConnections = 256

interface Measured {
  readonly name: string
  readonly results: ReadonlyArray<Load.LoadResult>
}

/** Medians over the runs of each, and every run. */
export const table = (measured: ReadonlyArray<Measured>) => [medians(measured), "", ...measured.map(runByRun)].join("\n")

const runByRun = ({ name, results }: Measured) => {
  const runs = results.map((run) => `${Report.digits(Load.perSecondOf(run))} (${Report.digits(run.cpuMicros["service"] ?? 0)})`)
  return `${name}, run by run (µs of the server): ${runs.join("  ")}`
}

const medians = (measured: ReadonlyArray<Measured>) => {
  const parts = Arr.dedupe(measured.flatMap(({ results }) => results.flatMap(({ cpuMicros }) => Object.keys(cpuMicros))))
  const of = (value: (result: Load.LoadResult) => number) => (row: Measured) => Report.median(row.results.map(value))
  const speeds = ({ results }: Measured) => results.map(Load.perSecondOf)
  return Report.details(measured, {
    "": ({ name }) => name,
    "requests/s": of(Load.perSecondOf),
    lowest: (row) => Math.min(...speeds(row)),
    highest: (row) => Math.max(...speeds(row)),
    "p50 ms": of(({ latencyMs }) => latencyMs.p50),
    "p99 ms": of(({ latencyMs }) => latencyMs.p99),
    ...Object.fromEntries(
      parts.map((part) => [
        `${part} µs`,
        (row: Measured) =>
          row.results.some(({ cpuMicros }) => part in cpuMicros) ? of(({ cpuMicros }) => cpuMicros[part] ?? 0)(row) : "-"
      ])
    )
  })
}
