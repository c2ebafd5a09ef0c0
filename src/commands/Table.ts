/** Text tables for the terminal. */
import { DateTime } from "effect"
import { printable } from "#domain/text/PlainText.ts"

/** A column of a table. A column of numbers is right-aligned. */
export interface Column<A> {
  readonly heading: string
  readonly cell: (row: A) => string | number | null
}

/** Formats a table: a line with the headings, then a line per row. Missing values are dashes. */
export const table = <A>(columns: ReadonlyArray<Column<A>>, rows: ReadonlyArray<A>): string => {
  const cells = rows.map((row) => columns.map((column) => column.cell(row)))
  const lines = [columns.map(({ heading }) => heading), ...cells.map((line) => line.map(textOf))]
  const widths = columns.map((_, index) => Math.max(...lines.map((line) => line[index]?.length ?? 0)))
  const isNumber = columns.map((_, index) => cells.length > 0 && cells.every((line) => typeof line[index] === "number"))
  return lines
    .map((line) =>
      line
        .map((text, index) => (isNumber[index] === true ? text.padStart(widths[index] ?? 0) : text.padEnd(widths[index] ?? 0)))
        .join("  ")
        .trimEnd()
    )
    .join("\n")
}

/** Formats a line per field: its name on the left, its value on the right. */
export const record = (fields: ReadonlyArray<readonly [string, string | number | null]>): string => {
  const width = Math.max(...fields.map(([name]) => name.length))
  return fields.map(([name, value]) => `${name.padEnd(width)}  ${textOf(value)}`).join("\n")
}

const textOf = (value: string | number | null) =>
  value === null || value === "" ? "-" : printable(String(value)).replaceAll("\n", "?")

/** Formats a time in UTC, as `2026-11-21 13:05`. */
export const moment = (at: DateTime.Utc | null): string | null =>
  at === null ? null : DateTime.formatIso(at).slice(0, 16).replace("T", " ")
