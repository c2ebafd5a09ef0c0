/** Formats the results of loads as a table of medians, followed by the single runs. */
import { Array as Arr } from "effect"
import * as Load from "#test/benchmarks/load/Load.ts"
import * as Report from "#test/benchmarks/Report.ts"

export interface Measured {
  readonly name: string
  readonly results: ReadonlyArray<Load.LoadResult>
}

export const withRuns = (measured: ReadonlyArray<Measured>) => [medians(measured), "", ...measured.map(eachRun)].join("\n")

const eachRun = ({ name, results }: Measured) => {
  const runs = results.map((run) => `${Report.digits(Load.perSecondOf(run))} (${Report.digits(Load.serviceCpuMicros(run))})`)
  return `${name}, each run (µs of the server): ${runs.join("  ")}`
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
