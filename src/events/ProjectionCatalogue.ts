/**
 * Lists the projections: the tables that are computed from events (migrations/projections.sql). Also creates the SQL that compares a
 * table with the rows that its events produce.
 */
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
  /** SQL expression for the position of the event to which a finding about a wrong row refers. */
  readonly position: string
}

const newestOf = (stream: string) =>
  `(SELECT max(e.position) FROM vatproof.events e WHERE e.log_id = ${logId} AND e.stream_id = ${stream})`

const either = (column: string) => `coalesce(d.${column}, t.${column})`

export const tableProjections: ReadonlyArray<TableProjection> = [
  {
    name: "streams",
    kind: "inline",
    version: 1,
    key: ["log_id", "stream_id"],
    columns: ["version", "first_position", "last_position"],
    position: either("last_position")
  },
  {
    name: "meters",
    kind: "inline",
    version: 1,
    key: ["log_id", "meter_id"],
    columns: ["used"],
    position: `(SELECT max(e.position) FROM vatproof.events e WHERE e.log_id = ${logId} AND e.meter_id = ${either("meter_id")})`
  },
  {
    name: "latest",
    kind: "inline",
    version: 1,
    key: ["log_id", "key"],
    columns: ["position", "as_of", "answered_at", "answer"],
    position: either("position")
  },
  { name: "listed", kind: "inline", version: 1, key: ["log_id", "list", "position"], columns: [], position: either("position") },
  {
    name: "accounts",
    kind: "inline",
    version: 1,
    key: ["account_id"],
    columns: ["plan", "per_month", "verified_at", "created_at", "closed_at"],
    position: newestOf(`'account-' || ${either("account_id")}`)
  },
  {
    name: "api_keys",
    kind: "inline",
    version: 1,
    key: ["key_id"],
    columns: ["account_id", "key_sha256", "prefix", "issued_at", "revoked_at", "previous_sha256", "previous_until"],
    position: newestOf(`'account-' || ${either("account_id")}`)
  },
  {
    name: "auditors",
    kind: "inline",
    version: 1,
    key: ["auditor_id"],
    columns: ["account_id", "token_sha256", "name", "added_at", "expires_at", "revoked_at"],
    position: newestOf(`'auditor-' || ${either("auditor_id")}`)
  },
  {
    name: "tasks",
    kind: "inline",
    version: 1,
    key: ["log_id", "task_id"],
    columns: [
      "position",
      "account_id",
      "key_id",
      "member_state",
      "vat_id",
      "reference_hash",
      "batch_id",
      "item",
      "accepted_at",
      "expires_at",
      "state",
      "closed_by",
      "closed_at"
    ],
    position: either("position")
  },
  {
    name: "batches",
    kind: "inline",
    version: 1,
    key: ["batch_id"],
    columns: [
      "position",
      "account_id",
      "key_id",
      "items",
      "malformed",
      "duplicates",
      "request_hash",
      "accepted_at",
      "expires_at",
      "cancelled_by"
    ],
    position: either("position")
  },
  {
    name: "event_index",
    kind: "asynchronous",
    version: 1,
    key: ["log_id", "position"],
    columns: ["type", "account_id", "key_id", "vat_id", "receipt_id"],
    position: either("position")
  }
]

/**
 * The columns of type text. Comparisons of these columns need an explicit collation, because the results of SQL functions have the
 * collation of the database.
 */
const texts: ReadonlySet<string> = new Set([
  "answer",
  "key",
  "list",
  "member_state",
  "meter_id",
  "name",
  "plan",
  "prefix",
  "receipt_id",
  "reference_hash",
  "request_hash",
  "state",
  "stream_id",
  "type",
  "vat_id"
])

const derived = (column: string) => (texts.has(column) ? `d.${column} COLLATE "C"` : `d.${column}`)

/** SQL: true if `d` and `t` have the same key. */
const sameKey = ({ key }: TableProjection) => key.map((column) => `${derived(column)} = t.${column}`).join(" AND ")

/**
 * Returns SQL for the rows in which `made` (derived from events) and `had` (stored) differ, with the columns `row_key` (text), `at`
 * (position), `wrong` ("missing", "surplus" or "different"), `differing` (names of columns) and the key columns of the table.
 */
export const differences = (table: TableProjection, made: string, had: string) => {
  const { columns, key, position } = table
  const [first = ""] = key
  const changed = columns.map((column) => `${derived(column)} IS DISTINCT FROM t.${column}`)
  const name = key.filter((column) => column !== "log_id" || key.length === 1).map((column) => either(column))
  return `SELECT concat_ws(' ', ${name.join(", ")}) AS row_key, ${position} AS at,
      CASE WHEN t.${first} IS NULL THEN 'missing' WHEN d.${first} IS NULL THEN 'surplus' ELSE 'different' END AS wrong,
      concat_ws(', ', ${["NULL", ...columns.map((column, index) => `CASE WHEN ${changed[index]} THEN '${column}' END`)].join(", ")}) AS differing,
      ${key.map((column) => `${either(column)} AS ${column}`).join(", ")}
    FROM ${made} d FULL JOIN ${had} t ON ${sameKey(table)}
    WHERE ${[`d.${first} IS NULL`, `t.${first} IS NULL`, ...changed].join(" OR ")}`
}
