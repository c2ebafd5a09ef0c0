/**
 * Compares what is read with what the events make of it: every read table, what the log says of itself, and the functions of the database with
 * the program's own, so that a forged function cannot hide a forged row. All of it is of one moment, though services go on.
 */
import { Effect, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import { logId } from "#events/store/AppendCommand.ts"
import type { Findings } from "#events/audit/verify/Findings.ts"
import { differences, type TableProjection, tableProjections } from "#events/projections/ProjectionCatalogue.ts"
import * as QueryPolicy from "#events/database/QueryPolicy.ts"

/** Wrong rows of a table that are told one by one, and positions that are compared by one statement. */
const maxTold = 200
const rangeSize = 100_000
/** A table of a log of many millions of events takes its time. */
const longest = "1h"

const WrongRow = Schema.Struct({
  row_key: Schema.String,
  at: Schema.NullOr(Schema.BigInt),
  wrong: Schema.Literals(["missing", "surplus", "different"]),
  total: Schema.BigInt
})
type WrongRow = typeof WrongRow.Type

const meanings = {
  missing: "the row is missing",
  surplus: "no event makes this row",
  different: "the row is not as the events make it"
}

/** Bodies of the functions of the schemas vatproof and vatproof_guard, by their names with the schema. */
export type Functions = ReadonlyMap<string, string>

const makeReads = Effect.map(SqlClient.SqlClient, (sql) => ({
  findFunctions: SqlSchema.findAll({
    Request: Schema.Void,
    Result: Schema.Struct({ name: Schema.String, body: Schema.String }),
    execute:
      () => sql`SELECT n.nspname || '.' || p.proname AS name, p.prosrc AS body FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
      WHERE n.nspname IN ('vatproof', 'vatproof_guard') ORDER BY 1`
  }),
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
        sql.unsafe(`SELECT row_key, at, wrong, count(*) OVER () AS total FROM (${query}) w ORDER BY at, row_key LIMIT ${maxTold}`)
          .unprepared
    })(undefined)
}))

const compareFunctions = Effect.fnUntraced(function* (functions: Functions, findings: Findings) {
  const { findFunctions } = yield* makeReads
  const stored = yield* findFunctions(undefined)
  for (const { body, name } of stored) {
    if (functions.get(name) !== body)
      findings.addRow({ table: "pg_proc", key: name, position: null }, "the function is not this program's")
  }
  for (const name of functions.keys()) {
    if (!stored.some((one) => one.name === name)) {
      findings.addRow({ table: "pg_proc", key: name, position: null }, "the function is missing")
    }
  }
})

/** Which rules filled the tables and how far they are; gives back how far each asynchronous one is. */
const compareProjections = Effect.fnUntraced(function* (head: number, findings: Findings) {
  const { findProjections } = yield* makeReads
  const rows = yield* findProjections(undefined)
  const tell = (key: string, message: string) => findings.addRow({ table: "projections", key, position: null }, message)
  for (const { log_id, name, position, version } of rows) {
    const table = tableProjections.find((one) => one.name === name)
    if (table === undefined || log_id !== logId) tell(name, "there is no such projection")
    else if (version > table.version) tell(name, `its rules have version ${version}, which is unknown`)
    else if ((position === null) !== (table.kind === "inline")) tell(name, "its position is not one of its kind")
    else if (Number(position ?? 0) > head) tell(name, `it is said to have followed ${position} events of ${head}`)
  }
  for (const { name } of tableProjections) if (!rows.some((row) => row.name === name)) tell(name, "the row is missing")
  return (name: string) => Math.min(head, Number(rows.find((row) => row.name === name)?.position ?? 0))
})

const compareTable = Effect.fnUntraced(function* (table: TableProjection, head: number, followed: number, findings: Findings) {
  const { findWrong } = yield* makeReads
  const { kind, name } = table
  const columns = [...table.key, ...table.columns].join(", ")
  const made = (from: number, to: number) => `vatproof.${name}_rows(${logId}::smallint, ${from}::bigint, ${to}::bigint)`
  const tell = (rows: ReadonlyArray<WrongRow>) => {
    for (const { at, row_key, wrong } of rows) {
      findings.addRow({ table: name, key: row_key, position: at === null ? null : Number(at) }, meanings[wrong])
    }
    const more = Number(rows[0]?.total ?? 0) - rows.length
    if (more > 0) findings.addRow({ table: name, key: "", position: null }, `${more} more rows are wrong`)
  }
  if (kind === "inline") return tell(yield* findWrong(differences(table, made(0, head), `vatproof.${name}`)))
  for (let from = 0; from < followed; from += rangeSize) {
    const to = Math.min(followed, from + rangeSize)
    const had = `(SELECT ${columns} FROM vatproof.${name} WHERE log_id = ${logId} AND position >= ${from} AND position < ${to})`
    tell(yield* findWrong(differences(table, made(from, to), had)))
  }
  const elsewhere = `(SELECT ${columns} FROM vatproof.${name} WHERE log_id <> ${logId} OR position < 0 OR position >= ${followed})`
  tell(yield* findWrong(differences(table, made(0, 0), elsewhere)))
})

/** Adds what is wrong to the findings. */
export const run = Effect.fn("ProjectionAudit.run")(function* (functions: Functions, findings: Findings) {
  const sql = yield* SqlClient.SqlClient
  const reads = yield* makeReads
  /** What cannot be compared is a finding as well; a savepoint lets the rest go on. */
  const orTold = (table: string, compared: Effect.Effect<void, SqlError | Schema.SchemaError, SqlClient.SqlClient>) =>
    compared.pipe(
      sql.withTransaction,
      Effect.catchTag(["SqlError", "SchemaError"], (error) =>
        Effect.sync(() => findings.addRow({ table, key: "", position: null }, `it cannot be compared: ${causeOf(error)}`))
      )
    )
  yield* Effect.gen(function* () {
    yield* sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY`.unprepared
    yield* sql`SELECT set_config('statement_timeout', ${longest}, true), set_config('idle_in_transaction_session_timeout', '10min', true),
      set_config('enable_seqscan', 'on', true), set_config('enable_bitmapscan', 'on', true), set_config('work_mem', '64MB', true)`
    yield* orTold("pg_proc", compareFunctions(functions, findings))
    const { head: end, same } = yield* reads.findLog(undefined)
    const head = Number(end)
    if (!same) findings.addRow({ table: "logs", key: String(logId), position: head }, meanings.different)
    const followed = yield* compareProjections(head, findings)
    for (const table of tableProjections) yield* orTold(table.name, compareTable(table, head, followed(table.name), findings))
  }).pipe(
    sql.withTransaction,
    Effect.catchTags({ SqlError: QueryPolicy.refused, SchemaError: Effect.die, NoSuchElementError: Effect.die })
  )
})

const causeOf = (error: SqlError | Schema.SchemaError) =>
  error._tag === "SqlError" && error.reason.cause instanceof Error ? error.reason.cause.message : error.message
