/** The report of a benchmark run: figures with their limits, and the tables behind the figures. */
import { Array as Arr } from "effect"
import { table } from "#app/commands/Table.ts"

/** Lower or upper limit of a figure. */
export type Limit = { readonly atLeast: number } | { readonly atMost: number }

export interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: string
  /** Null if no limit is documented. */
  readonly limit: Limit | null
}

export interface SectionReport {
  readonly section: string
  /** Describes the measurement in one or two sentences. */
  readonly how: string
  readonly figures: ReadonlyArray<Figure>
  /** The measurements behind the figures, as lines of text. */
  readonly details: ReadonlyArray<string>
}

export interface Report {
  readonly at: string
  readonly machine: ReadonlyArray<string>
  readonly sections: ReadonlyArray<SectionReport>
}

export const atLeast = (name: string, value: number, unit: string, limit: number): Figure => ({
  name,
  value,
  unit,
  limit: { atLeast: limit }
})

export const atMost = (name: string, value: number, unit: string, limit: number): Figure => ({
  name,
  value,
  unit,
  limit: { atMost: limit }
})

/** Returns a figure without a limit. */
export const plain = (name: string, value: number, unit: string): Figure => ({ name, value, unit, limit: null })

export const isMet = ({ limit, value }: Figure) =>
  limit === null || ("atLeast" in limit ? value >= limit.atLeast : value <= limit.atMost)

/** Formats a number with about three significant digits. */
export const digits = (value: number) => {
  if (value >= 1_000) return Math.round(value).toLocaleString("en-US")
  return Number.isInteger(value) ? String(value) : value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2)
}

const limitOf = ({ limit, unit }: Figure) =>
  limit === null ? "" : "atLeast" in limit ? `≥ ${digits(limit.atLeast)} ${unit}` : `≤ ${digits(limit.atMost)} ${unit}`

const verdictOf = (figure: Figure) => (figure.limit === null ? "" : isMet(figure) ? "met" : "missed")

const figuresOf = ({ figures }: SectionReport) =>
  aligned([
    ["figure", "measured", "limit", ""],
    ...figures.map((figure) => [figure.name, `${digits(figure.value)} ${figure.unit}`, limitOf(figure), verdictOf(figure)])
  ])

const linesOf = (report: SectionReport) => [...figuresOf(report), "", ...report.details.flatMap((text) => text.split("\n"))]

/** Formats a section for the terminal. */
export const sectionText = (report: SectionReport) =>
  [`${report.section}: ${report.how}`, ...indented(linesOf(report))].join("\n")

/** Formats a report for BENCHMARKS.md. */
export const markdown = ({ at, machine, sections }: Report) =>
  [
    `${at.slice(0, 10)}, on ${machine[0]};`,
    `${machine.slice(1).join(";\n")}.`,
    ...sections.flatMap((report) => ["", `### ${report.section}`, "", `${report.how}.`, "", "```", ...linesOf(report), "```"])
  ].join("\n")

const indented = (lines: ReadonlyArray<string>) => lines.map((line) => (line === "" ? "" : `  ${line}`))

const aligned = (rows: ReadonlyArray<ReadonlyArray<string>>) => {
  const widths = (rows[0] ?? []).map((_, index) => Math.max(...rows.map((row) => row[index]?.length ?? 0)))
  return rows.map((row) =>
    row
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join("   ")
      .trimEnd()
  )
}

/** Formats measurements as a table. */
export const details = <A>(rows: ReadonlyArray<A>, columns: Readonly<Record<string, (row: A) => string | number>>) =>
  table(
    Object.entries(columns).map(([heading, cell]) => ({
      heading,
      cell: (row: A) => {
        const value = cell(row)
        return typeof value === "number" ? digits(value) : value
      }
    })),
    rows
  )

export const missed = ({ sections }: Report) =>
  sections.flatMap(({ figures, section }) => figures.filter((figure) => !isMet(figure)).map(({ name }) => `${section}: ${name}`))

export const median = (values: ReadonlyArray<number>) => {
  const sorted = values.toSorted((one, other) => one - other)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2
}

/** Returns the median of the ratios of all rounds. A disturbance of the machine affects both values of a round and hardly their ratio. */
export const medianRatio = <A>(ones: ReadonlyArray<A>, others: ReadonlyArray<A>, of: (measured: A) => number) =>
  median(ratios(ones, others, of))

export const ratios = <A>(ones: ReadonlyArray<A>, others: ReadonlyArray<A>, of: (measured: A) => number) =>
  Arr.zipWith(ones, others, (one, other) => of(one) / of(other))
