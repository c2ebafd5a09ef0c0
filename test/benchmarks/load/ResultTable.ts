/** Results of loads as a table: medians over the runs of each, and every run. */
import { Array as Arr } from "effect"
import * as Load from "#test/benchmarks/load/Load.ts"
import * as Report from "#test/benchmarks/Report.ts"

export interface Measured {
  readonly name: string
  readonly results: ReadonlyArray<Load.LoadResult>
}

export const withRuns = (measured: ReadonlyArray<Measured>) => [medians(measured), "", ...measured.map(runByRun)].join("\n")

const runByRun = ({ name, results }: Measured) => {
  const runs = results.map((run) => `${Report.digits(Load.perSecondOf(run))} (${Report.digits(Load.serviceMicrosOf(run))})`)
  return `${name}, run by run (µs of the server): ${runs.join("  ")}`
}

export const medians = (measured: ReadonlyArray<Measured>) => {
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
