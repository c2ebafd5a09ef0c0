/** Applies `migrations/NNNN_name.sql`, forward only, all pending ones in one transaction under a lock. */
import { PgMigrator } from "@effect/sql-pg"
import { Duration, Effect, FileSystem, Layer, Path, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import type { MigrationError } from "effect/sql/Migrator"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { hash } from "node:crypto"
import { insistent } from "#infra/Insistent.ts"
import { causeOf } from "#infra/Postgres.ts"

const table = "vatproof_migrations"

const fileName = /^(\d{4})_(\w+)\.sql$/u

/** There is no database to work on, or it is older than this version. */
export class DatabaseNotReady extends Schema.TaggedError<DatabaseNotReady>()("DatabaseNotReady", { message: Schema.String }) {}

/** The database has other migrations than this version, or would not take its own. Trying again changes nothing. */
export class MigrationRefused extends Schema.TaggedError<MigrationRefused>()("MigrationRefused", { message: Schema.String }) {}

/** Applies what is pending and gives back the names of what it applied. Replicas that start at once wait for each other. */
export const run = Effect.fn("Migrations.run")(function* () {
  const files = yield* migrationFiles()
  const missing = yield* findMissing(files)
  // A replica whose role may not change the schema can start where nothing is pending.
  if (missing.length === 0) return []
  const newest = files.at(-1)
  const applied = yield* PgMigrator.run({
    table,
    loader: Effect.succeed(
      files.map((file) => [
        file.id,
        file.name,
        Effect.succeed(file === newest ? Effect.andThen(apply(file), keepDigests(files)) : apply(file))
      ])
    )
  }).pipe(
    untilUnlocked(missing),
    Effect.catchTag(["SqlError", "MigrationError"], (error) => Effect.fail(refusal(missing, error)))
  )
  return applied.map(([id, name]) => nameOf({ id, name }))
})

/**
 * How long a migration waits for a table that somebody uses, and for how long it comes again. Whoever waits for one keeps all later ones
 * waiting behind, also those who would only read: a service could not answer for as long as a dump takes.
 */
const lockTimeout = "2s"
const lockPatience = Duration.minutes(10)

const untilUnlocked = (missing: ReadonlyArray<MigrationFile>) =>
  insistent({
    while: isLocked,
    every: "1 second",
    patience: lockPatience,
    warning: () => `Others use the tables that ${namesOf(missing)} change: trying again for ${Duration.format(lockPatience)}`
  })

const isLocked = (error: SqlError | MigrationError) => {
  const cause = sqlErrorIn(error)
  return isSqlError(cause) && cause.reason._tag === "LockTimeoutError"
}

const sqlErrorIn = (error: SqlError | MigrationError) => (error._tag === "SqlError" ? error : error.cause)

const nameOf = ({ id, name }: { readonly id: number; readonly name: string }) => `${String(id).padStart(4, "0")}_${name}`
const namesOf = (named: ReadonlyArray<{ readonly id: number; readonly name: string }>) => named.map(nameOf).join(", ")

/** All of them are one transaction, so nothing was changed. */
const refusal = (missing: ReadonlyArray<MigrationFile>, error: SqlError | MigrationError) => {
  const cause = sqlErrorIn(error)
  const why = isSqlError(cause) ? causeOf(cause) : error.message
  const message =
    isSqlError(cause) && cause.reason._tag === "AuthorizationError"
      ? `This role may not apply ${namesOf(missing)}: run "vatproof migrate" as the database's administrator (${why})`
      : `The database refused its migrations (${namesOf(missing)}), and nothing was changed: ${why}`
  return new MigrationRefused({ message })
}

/** For whoever needs the schema of this version and may not change the one that is there. */
export const requireAll = Effect.fn("Migrations.requireAll")(function* () {
  const missing = yield* findMissing(yield* migrationFiles())
  if (missing.length === 0) return
  const message = `The database is older than this version: run "vatproof migrate" first (${namesOf(missing)})`
  return yield* new DatabaseNotReady({ message })
})

/**
 * A migration is called so if the versions before it go on working with what it adds: then they may start after it, be it in the middle
 * of a roll-out or to take one back. After any other migration only versions that know it may start.
 */
const goesWithOlder = "expand_"

/** The files that are not applied yet; refuses a database on which something else was applied. */
const findMissing = Effect.fnUntraced(function* (files: ReadonlyArray<MigrationFile>) {
  const applied = yield* findApplied()
  const newestFile = Math.max(...files.map(({ id }) => id))
  const newestApplied = Math.max(0, ...applied.map(({ id }) => id))
  const unknown = applied.filter(({ id, name }) => id > newestFile && !name.startsWith(goesWithOlder))
  if (unknown.length > 0) {
    const message = `The database is newer than this version, which does not know ${namesOf(unknown)}: start a version that does`
    return yield* new MigrationRefused({ message })
  }
  const isAsApplied = (file: MigrationFile) =>
    applied.some(({ id, name, sha256 }) => id === file.id && name === file.name && (sha256 ?? file.sha256) === file.sha256)
  const changed = files.filter((file) => file.id <= newestApplied && !isAsApplied(file))
  const removed = applied.filter(({ id }) => id <= newestFile && files.every((file) => file.id !== id))
  if (changed.length + removed.length > 0) {
    const message = `The database was made by other migrations than this version has: ${namesOf([...changed, ...removed])} changed since`
    return yield* new MigrationRefused({ message })
  }
  return files.filter(({ id }) => id > newestApplied)
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
  readonly sha256: string
}

const migrationFiles = Effect.fnUntraced(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const directory = path.join(import.meta.dirname, "../../migrations")
  const files: Array<MigrationFile> = []
  for (const entry of (yield* fs.readDirectory(directory)).toSorted()) {
    const [, id, name] = fileName.exec(entry) ?? []
    if (id === undefined || name === undefined) continue
    const text = yield* fs.readFileString(path.join(directory, entry))
    files.push({ id: Number(id), name, text, sha256: hash("sha256", text, "hex") })
  }
  return files
})

const apply = Effect.fnUntraced(function* (file: MigrationFile) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`SELECT set_config('lock_timeout', ${lockTimeout}, true)`
  yield* Effect.forEach(splitStatements(file.text), (statement) => sql.unsafe(statement).unprepared, { discard: true })
})

/** Beside each migration that is applied, what was in its file. One that was applied before this was kept counts as it is now. */
const keepDigests = Effect.fnUntraced(function* (files: ReadonlyArray<MigrationFile>) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`ALTER TABLE ${sql(table)} ADD COLUMN IF NOT EXISTS sha256 text`.unprepared
  yield* Effect.forEach(
    files,
    ({ id, sha256 }) => sql`UPDATE ${sql(table)} SET sha256 = ${sha256} WHERE migration_id = ${id} AND sha256 IS NULL`,
    { discard: true }
  )
})

const Applied = Schema.Struct({ id: Schema.Int, name: Schema.String, sha256: Schema.NullOr(Schema.String) })

/** The first thing that is asked of a database: what is wrong with its address shows here. */
const findApplied = Effect.fnUntraced(
  function* () {
    const sql = yield* SqlClient.SqlClient
    const exists = SqlSchema.findAll({
      Request: Schema.String,
      Result: Schema.Struct({ found: Schema.Int }),
      execute: (name) => sql`SELECT 1 AS found WHERE to_regclass(${name}) IS NOT NULL`
    })
    if ((yield* exists(table)).length === 0) return []
    const find = SqlSchema.findAll({
      Request: Schema.Void,
      Result: Applied,
      // The column came later than the table.
      execute: () => sql`SELECT migration_id AS id, name, to_jsonb(m) ->> 'sha256' AS sha256 FROM ${sql(table)} AS m ORDER BY id`
    })
    return yield* find(undefined)
  },
  Effect.catchTag("SqlError", (error) =>
    Effect.fail(new DatabaseNotReady({ message: `The database cannot be used: ${causeOf(error)}` }))
  )
)

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
