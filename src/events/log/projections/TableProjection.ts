/**
 * The projections: tables that are computed from events (migrations/projections.sql). Also creates the SQL that compares a table with the
 * rows that its events produce.
 */
import { Context } from "effect"
import { logId } from "#events/log/store/AppendCommand.ts"

/**
 * A projection. `vatproof.<name>_rows` computes its rows from events. The append updates an inline projection; an asynchronous one
 * follows the log. `version` increases when the rules of the rows change. In the SQL below, `d` is a row derived from events and `t` is
 * the stored row.
 */
export interface TableProjection {
  readonly name: string
  readonly kind: "inline" | "asynchronous"
  readonly version: number
  readonly key: ReadonlyArray<string>
  readonly columns: ReadonlyArray<string>
  /** The key and other columns of type text. */
  readonly texts: ReadonlyArray<string>
  /** SQL expression for the position of the event to which a finding about a wrong row refers. */
  readonly position: string
}

/** True for an asynchronous table with rows of one event each, which is compared in ranges. Other tables are compared as a whole. */
export const hasRowsOfEvents = ({ key, kind }: TableProjection): boolean => kind === "asynchronous" && key.includes("position")

/** All projections of a product: those of the log, and its own. */
export class TableProjections extends Context.Service<TableProjections, ReadonlyArray<TableProjection>>()(
  "vatproof/events/log/projections/TableProjections"
) {}

/** SQL: the column of the derived row or of the stored row. */
export const either = (column: string) => `coalesce(d.${column}, t.${column})`

/** The projections that the log has itself: the versions of streams, and the sums of the units of meters. */
export const logProjections: ReadonlyArray<TableProjection> = [
  {
    name: "streams",
    kind: "inline",
    version: 1,
    key: ["log_id", "stream_id"],
    columns: ["version", "first_position", "last_position"],
    texts: ["stream_id"],
    position: either("last_position")
  },
  {
    name: "meters",
    kind: "inline",
    version: 1,
    key: ["log_id", "meter_id"],
    columns: ["used"],
    texts: ["meter_id"],
    position: `(SELECT max(e.position) FROM vatproof.events e WHERE e.log_id = ${logId} AND e.meter_id = ${either("meter_id")})`
  }
]

/** Returns the SQL of a column of a derived row. Text needs a collation, because the results of SQL functions have the collation of the database. */
const derived = ({ texts }: TableProjection, column: string) =>
  texts.includes(column) ? `d.${column} COLLATE "C"` : `d.${column}`

/** SQL: true if `d` and `t` have the same key. */
const sameKey = (table: TableProjection) => table.key.map((column) => `${derived(table, column)} = t.${column}`).join(" AND ")

/**
 * Returns SQL for the rows in which `made` (derived from events) and `had` (stored) differ, with the columns `row_key` (text), `at`
 * (position), `wrong` ("missing", "surplus" or "different"), `differing` (names of columns) and the key columns of the table.
 */
export const differences = (table: TableProjection, made: string, had: string) => {
  const { columns, key, position } = table
  const [first = ""] = key
  const changed = columns.map((column) => `${derived(table, column)} IS DISTINCT FROM t.${column}`)
  const name = key.filter((column) => column !== "log_id" || key.length === 1).map((column) => either(column))
  return `SELECT concat_ws(' ', ${name.join(", ")}) AS row_key, ${position} AS at,
      CASE WHEN t.${first} IS NULL THEN 'missing' WHEN d.${first} IS NULL THEN 'surplus' ELSE 'different' END AS wrong,
      concat_ws(', ', ${["NULL", ...columns.map((column, index) => `CASE WHEN ${changed[index]} THEN '${column}' END`)].join(", ")}) AS differing,
      ${key.map((column) => `${either(column)} AS ${column}`).join(", ")}
    FROM ${made} d FULL JOIN ${had} t ON ${sameKey(table)}
    WHERE ${[`d.${first} IS NULL`, `t.${first} IS NULL`, ...changed].join(" OR ")}`
}
