/**
 * Compares the projections, and the log's row in `vatproof.logs`, with the rows that the events produce. All reads use one snapshot of
 * the database, so the service can continue to run. A forged function could hide a forged row: SchemaAudit.ts finds it.
 */
import { Effect, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import { logId } from "#events/log/store/AppendCommand.ts"
import type { Findings } from "#events/log/verify/Findings.ts"
import { differences, hasRowsOfEvents, type TableProjection, TableProjections } from "#events/log/projections/TableProjection.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"

/** Maximum number of wrong rows that are reported per table. */
const maxReported = 200
/** Number of positions that one statement compares. */
const rangeSize = 100_000
/** Timeout of one SQL statement, which is long enough for a log with many millions of events. */
const longest = "1h"

const WrongRow = Schema.Struct({
  row_key: Schema.String,
  at: Schema.NullOr(Schema.BigInt),
  wrong: Schema.Literals(["missing", "surplus", "different"]),
  differing: Schema.String,
  total: Schema.BigInt
})
type WrongRow = typeof WrongRow.Type

const meanings = {
  missing: "the row is missing",
  surplus: "no event produces this row",
  different: "the row differs from what the events produce"
}

const makeReads = Effect.map(SqlClient.SqlClient, (sql) => ({
  findLog: SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({ head: Schema.BigInt, same: Schema.Boolean }),
    execute: () => sql`SELECT e.head, coalesce((SELECT count(*) = 1 AND bool_and(l.log_id = ${logId} AND l.next_position = e.head
        AND l.last_recorded_at IS NOT DISTINCT FROM e.recorded_at) FROM vatproof.logs l), false) AS same
      FROM (SELECT coalesce(max(position) + 1, 0) AS head, coalesce((SELECT recorded_at FROM vatproof.events
          WHERE log_id = ${logId} ORDER BY position DESC LIMIT 1), '-infinity') AS recorded_at
        FROM vatproof.events WHERE log_id = ${logId}) e`
  }),
  findProjections: SqlSchema.findAll({
    Request: Schema.Void,
    Result: Schema.Struct({
      log_id: Schema.Int,
      name: Schema.String,
      version: Schema.Int,
      position: Schema.NullOr(Schema.BigInt)
    }),
    execute: () => sql`SELECT log_id, name, version, position FROM vatproof.projections ORDER BY log_id, name`
  }),
  findWrong: (query: string) =>
    SqlSchema.findAll({
      Request: Schema.Void,
      Result: WrongRow,
      execute: () =>
        sql.unsafe(
          `SELECT row_key, at, wrong, differing, count(*) OVER () AS total FROM (${query}) w ORDER BY at, row_key LIMIT ${maxReported}`
        ).unprepared
    })(undefined)
}))

/**
 * Compares the rows of `vatproof.projections` with the projections of this program and with the number of events. Returns a
 * function that converts the name of a projection to the position up to which the projection follows the log.
 */
const compareProjections = Effect.fnUntraced(function* (head: number, findings: Findings) {
  const { findProjections } = yield* makeReads
  const tables = yield* TableProjections
  const rows = yield* findProjections(undefined)
  const report = (key: string, message: string) => findings.addRow({ table: "projections", key, position: null }, message)
  for (const { log_id, name, position, version } of rows) {
    const table = tables.find((one) => one.name === name)
    if (table === undefined || log_id !== logId) report(name, "this version of the program has no projection of this name")
    else if (version > table.version)
      report(name, `the projection has the version ${version}, which this version of the program does not know`)
    else if ((position === null) !== (table.kind === "inline"))
      report(
        name,
        "the row has a position although the projection is updated inline, or no position although it is updated asynchronously"
      )
    else if (Number(position ?? 0) > head) report(name, `the row has the position ${position}, but the log has ${head} events`)
  }
  for (const { name } of tables) if (!rows.some((row) => row.name === name)) report(name, "the row is missing")
  return (name: string) => Math.min(head, Number(rows.find((row) => row.name === name)?.position ?? 0))
})

const compareTable = Effect.fnUntraced(function* (table: TableProjection, head: number, followed: number, findings: Findings) {
  const { findWrong } = yield* makeReads
  const { kind, name } = table
  const columns = [...table.key, ...table.columns].join(", ")
  const derivedRows = (from: number, to: number) => `vatproof.${name}_rows(${logId}::smallint, ${from}::bigint, ${to}::bigint)`
  const report = (rows: ReadonlyArray<WrongRow>) => {
    for (const { at, differing, row_key, wrong } of rows) {
      const where = wrong === "different" ? `, in ${differing}` : ""
      findings.addRow({ table: name, key: row_key, position: at === null ? null : Number(at) }, `${meanings[wrong]}${where}`)
    }
    const more = Number(rows[0]?.total ?? 0) - rows.length
    if (more > 0) findings.addRow({ table: name, key: "", position: null }, `${more} more rows are wrong`)
  }
  if (!hasRowsOfEvents(table)) {
    const end = kind === "inline" ? head : followed
    return report(yield* findWrong(differences(table, derivedRows(0, end), `vatproof.${name}`)))
  }
  for (let from = 0; from < followed; from += rangeSize) {
    const to = Math.min(followed, from + rangeSize)
    const storedRows = `(SELECT ${columns} FROM vatproof.${name} WHERE log_id = ${logId} AND position >= ${from} AND position < ${to})`
    report(yield* findWrong(differences(table, derivedRows(from, to), storedRows)))
  }
  const elsewhere = `(SELECT ${columns} FROM vatproof.${name} WHERE log_id <> ${logId} OR position < 0 OR position >= ${followed})`
  report(yield* findWrong(differences(table, derivedRows(0, 0), elsewhere)))
})

/** Compares all tables, adds the differences to the findings, and returns these. */
export const run = Effect.fn("ProjectionAudit.run")(function* (
  findings: Findings,
  isMeant: (table: string) => boolean = () => true
) {
  const sql = yield* SqlClient.SqlClient
  const reads = yield* makeReads
  /** Reports a table that cannot be compared. A savepoint lets the comparison of the other tables continue. */
  const orReported = (table: string, compared: Effect.Effect<void, SqlError | Schema.SchemaError, SqlClient.SqlClient>) =>
    compared.pipe(
      sql.withTransaction,
      Effect.catchTag(["SqlError", "SchemaError"], (error) =>
        Effect.sync(() => findings.addRow({ table, key: "", position: null }, `the table cannot be compared: ${causeOf(error)}`))
      )
    )
  yield* Effect.gen(function* () {
    yield* sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY`.unprepared
    yield* sql`SELECT set_config('statement_timeout', ${longest}, true), set_config('idle_in_transaction_session_timeout', '10min', true),
      set_config('enable_seqscan', 'on', true), set_config('enable_bitmapscan', 'on', true), set_config('work_mem', '64MB', true)`
    const { head: end, same } = yield* reads.findLog(undefined)
    const head = Number(end)
    if (!same) findings.addRow({ table: "logs", key: String(logId), position: head }, meanings.different)
    const followed = yield* compareProjections(head, findings)
    for (const table of (yield* TableProjections).filter(({ name }) => isMeant(name)))
      yield* orReported(table.name, compareTable(table, head, followed(table.name), findings))
  }).pipe(
    sql.withTransaction,
    Effect.catchTags({ SqlError: QueryPolicy.refused, SchemaError: Effect.die, NoSuchElementError: Effect.die })
  )
  return findings
})

const causeOf = (error: SqlError | Schema.SchemaError) =>
  error._tag === "SqlError" && error.reason.cause instanceof Error ? error.reason.cause.message : error.message
