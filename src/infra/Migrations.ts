/** Applies `migrations/NNNN_name.sql`, forward only, all pending ones in one transaction under a lock. */
import { PgMigrator } from "@effect/sql-pg"
import { Effect, FileSystem, Layer, Path, Predicate, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"

const table = "vatproof_migrations"

const fileName = /^(\d{4})_(\w+)\.sql$/u

/** Applies what is pending and gives back the names of what it applied. Replicas that start at once wait for each other. */
export const run = Effect.fn("Migrations.run")(function* () {
  const files = yield* migrationFiles()
  const newest = Math.max(...files.map((file) => file.id))
  // A replica whose role may not change the schema can start where nothing is pending.
  if ((yield* appliedUpTo()) >= newest) return []
  const applied = yield* PgMigrator.run({
    table,
    loader: Effect.succeed(files.map((file) => [file.id, file.name, Effect.succeed(apply(file))]))
  })
  return applied.map(([id, name]) => nameOf({ id, name }))
})

const nameOf = ({ id, name }: { readonly id: number; readonly name: string }) => `${String(id).padStart(4, "0")}_${name}`

/** There is no database to work on, or it is not the one of this version. */
export class DatabaseNotReady extends Schema.TaggedError<DatabaseNotReady>()("DatabaseNotReady", { message: Schema.String }) {}

/** For whoever needs the schema of this version and may not change the one that is there. */
export const requireAll = Effect.fn("Migrations.requireAll")(function* () {
  const applied = yield* appliedUpTo()
  const missing = (yield* migrationFiles()).filter((file) => file.id > applied).map(nameOf)
  if (missing.length === 0) return
  const message = `The database is older than this version: run "vatproof migrate" first (${missing.join(", ")})`
  return yield* new DatabaseNotReady({ message })
})

/** Migrates while it is built. */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const applied = yield* run()
    if (applied.length > 0) yield* Effect.logInfo(`Applied ${applied.length} migrations: ${applied.join(", ")}`)
  })
)

interface MigrationFile {
  readonly id: number
  readonly name: string
  readonly text: string
}

const migrationFiles = Effect.fnUntraced(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const directory = path.join(import.meta.dirname, "../../migrations")
  const files: Array<MigrationFile> = []
  for (const entry of (yield* fs.readDirectory(directory)).toSorted()) {
    const [, id, name] = fileName.exec(entry) ?? []
    if (id === undefined || name === undefined) continue
    files.push({ id: Number(id), name, text: yield* fs.readFileString(path.join(directory, entry)) })
  }
  return files
})

const apply = Effect.fnUntraced(function* (file: MigrationFile) {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(splitStatements(file.text), (statement) => sql.unsafe(statement).unprepared, { discard: true })
})

/** The first thing that is asked of a database: what is wrong with its address shows here. */
const appliedUpTo = Effect.fnUntraced(
  function* () {
    const sql = yield* SqlClient.SqlClient
    const exists = SqlSchema.findAll({
      Request: Schema.String,
      Result: Schema.Struct({ found: Schema.Int }),
      execute: (name) => sql`SELECT 1 AS found WHERE to_regclass(${name}) IS NOT NULL`
    })
    if ((yield* exists(table)).length === 0) return 0
    const newest = SqlSchema.findOne({
      Request: Schema.Void,
      Result: Schema.Struct({ id: Schema.Int }),
      execute: () => sql`SELECT coalesce(max(migration_id), 0) AS id FROM ${sql(table)}`
    })
    return (yield* newest(undefined)).id
  },
  Effect.catchTag("SqlError", (error) =>
    Effect.fail(new DatabaseNotReady({ message: `The database cannot be used: ${causeOf(error)}` }))
  )
)

/** The server's or the network's own words, which name the host, the role or the database, but no password. */
const causeOf = ({ message, reason: { cause } }: SqlError) =>
  Predicate.hasProperty(cause, "message") && Predicate.isString(cause.message) ? cause.message : message

/** The driver takes one command a statement: splits at `;` outside quotes, dollar quotes and comments. */
export const splitStatements = (text: string): ReadonlyArray<string> => {
  const skipped = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|(\$\w*\$)[\s\S]*?\1|;/gu
  const statements: Array<string> = []
  let start = 0
  for (const match of text.matchAll(skipped)) {
    if (match[0] !== ";") continue
    statements.push(text.slice(start, match.index))
    start = match.index + 1
  }
  statements.push(text.slice(start))
  return statements.map((statement) => statement.trim()).filter((statement) => statement.replace(/--[^\n]*/gu, "").trim() !== "")
}
