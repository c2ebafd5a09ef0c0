/** Migrates the database with the files of `migrations/`, in one transaction under a lock (migrations/README.md). */
import { Duration, Effect, FileSystem, Layer, Path, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import { hash } from "node:crypto"
import * as SchemaComparison from "#infra/postgres/SchemaComparison.ts"
import { retryWhileBusy } from "#infra/postgres/RetryWhileBusy.ts"
import { causeOf } from "#infra/postgres/SqlErrorCause.ts"

/** The table that records each applied file with its digest. */
const table = "vatproof_migrations"
const qualified = `public.${table}`

/** The order in which files are applied. Numbered files run once, the others again after each change. */
const order = [/^\d{4}_\w+\.sql$/u, /^projections\.sql$/u, /^functions\/\w+\.sql$/u, /^views\.sql$/u, /^protection\.sql$/u]

/** The file with triggers, owners and rights. It runs last whenever another file was applied. */
const protection = "protection"

/** The database is missing or older than this version. */
export class DatabaseNotReady extends Schema.TaggedError<DatabaseNotReady>()("DatabaseNotReady", { message: Schema.String }) {}

/** The database was migrated with files that this version does not have, or rejected this version's files. A retry fails again. */
export class MigrationRefused extends Schema.TaggedError<MigrationRefused>()("MigrationRefused", { message: Schema.String }) {}

/** Applies the missing migration files and returns their names. Concurrent replicas wait for each other. */
export const run = Effect.fn("Migrations.run")(function* () {
  const files = yield* migrationFiles()
  const missing = yield* findMissing(files)
  // A replica without the right to change the schema can start if no file is missing.
  if (missing.length === 0) return []
  const sql = yield* SqlClient.SqlClient
  return yield* sql.withTransaction(applyMissing(files)).pipe(
    untilUnlocked(missing),
    Effect.catchTag("SqlError", (error) => Effect.fail(refusal(missing, error)))
  )
})

const applyMissing = Effect.fnUntraced(function* (files: ReadonlyArray<MigrationFile>) {
  const sql = yield* SqlClient.SqlClient
  const setLockTimeout = (timeout: Duration.Duration) =>
    sql`SELECT set_config('lock_timeout', ${String(Duration.toMillis(timeout))}, true)`
  yield* setLockTimeout(lockRetryFor)
  yield* sql`SELECT pg_advisory_xact_lock(hashtextextended(${table}, 0))`
  yield* setLockTimeout(lockTimeout)
  // Another replica may have applied the missing files while this replica waited for the lock.
  const missing = yield* findMissing(files)
  if (!(yield* hasTable)) {
    yield* sql`CREATE TABLE ${sql(qualified)} (name text COLLATE "C" PRIMARY KEY, sha256 text NOT NULL,
      applied_at timestamptz NOT NULL DEFAULT now())`.unprepared
  }
  yield* Effect.forEach(missing, apply, { discard: true })
  return missing.map(({ name }) => name)
})

/**
 * Lock timeout of a migration, and how long the migration keeps retrying. While a migration waits for the lock on a table, all
 * later queries of the table wait behind the migration, even reads. The short timeout ends this wait, for example while a
 * database dump holds the lock.
 */
const lockTimeout = Duration.seconds(2)
const lockRetryFor = Duration.minutes(10)

const untilUnlocked = (missing: ReadonlyArray<MigrationFile>) =>
  retryWhileBusy({
    while: isLocked,
    every: "1 second",
    retryFor: lockRetryFor,
    warning: () =>
      `Other sessions lock tables that the migrations ${namesOf(missing)} change; retrying for ${Duration.format(lockRetryFor)}`
  })

const isLocked = (error: SqlError | Schema.SchemaError | DatabaseNotReady | MigrationRefused) =>
  error._tag === "SqlError" && error.reason._tag === "LockTimeoutError"

const namesOf = (named: ReadonlyArray<{ readonly name: string }>) => named.map(({ name }) => name).join(", ")

/** Returns the error for a database that rejected a file. All files run in one transaction, so nothing was changed. */
const refusal = (missing: ReadonlyArray<MigrationFile>, error: SqlError) => {
  const message =
    error.reason._tag === "AuthorizationError"
      ? `This role may not apply ${namesOf(missing)}: run "vatproof migrate" as the database's administrator (${causeOf(error)})`
      : `The database rejected the migrations (${namesOf(missing)}), and nothing was changed: ${causeOf(error)}`
  return new MigrationRefused({ message })
}

/**
 * Applies the repeatable files again if the schema differs from that of this version. Returns the objects that this restored, and the
 * differences that remain: an administrator must revert them, because no file creates or removes them again.
 */
export const repair = Effect.fn("Migrations.repair")(function* () {
  const compare = yield* SchemaComparison.load
  const before = yield* compare
  if (before.length === 0 || before[0]?.object === SchemaComparison.migrations) return { restored: [], remaining: before }
  const sql = yield* SqlClient.SqlClient
  const files = (yield* migrationFiles()).filter((file) => numberOf(file) === 0)
  yield* Effect.forEach(files, apply, { discard: true }).pipe(
    sql.withTransaction,
    Effect.catchTag("SqlError", (error) => Effect.fail(refusal(files, error)))
  )
  const remaining = yield* compare
  const restored = before.filter(({ object }) => remaining.every((other) => other.object !== object)).map(({ object }) => object)
  return { restored, remaining }
})

/** Fails unless the database has the schema of this version. Commands call it, because they may not change the schema. */
export const requireAll = Effect.fn("Migrations.requireAll")(function* () {
  const missing = yield* findMissing(yield* migrationFiles())
  if (missing.length === 0) return
  const message = `The database is older than this version: run "vatproof migrate" first (${namesOf(missing)})`
  return yield* new DatabaseNotReady({ message })
})

/**
 * Prefix in the name of a migration file that is compatible with older versions of the service. An older version starts on a
 * database with this file, for example during a roll-out or after a rollback. It refuses to start on a database with any other
 * numbered file that it does not know.
 */
const compatiblePrefix = "expand_"

/** Returns the number of a numbered file; 0 for any other file. */
const numberOf = ({ name }: { readonly name: string }) => Number(/^\d{4}(?=_)/u.exec(name)?.[0] ?? 0)

const newestOf = (named: ReadonlyArray<{ readonly name: string }>) => Math.max(0, ...named.map(numberOf))

/** Returns the files to apply. Fails if the applied numbered files are unknown to this version or differ from its own. */
const findMissing = Effect.fnUntraced(function* (files: ReadonlyArray<MigrationFile>) {
  const applied = yield* findApplied()
  const [newestFile, newestApplied] = [newestOf(files), newestOf(applied)]
  const unknown = applied.filter(
    (row) => numberOf(row) > newestFile && !row.name.slice("0000_".length).startsWith(compatiblePrefix)
  )
  if (unknown.length > 0) {
    const message = `The database is newer than this version, which lacks ${namesOf(unknown)}: start the version that migrated it`
    return yield* new MigrationRefused({ message })
  }
  const isApplied = (file: MigrationFile) => applied.some(({ name, sha256 }) => name === file.name && sha256 === file.sha256)
  const changed = files.filter((file) => numberOf(file) > 0 && numberOf(file) <= newestApplied && !isApplied(file))
  const removed = applied.filter(
    (row) => numberOf(row) > 0 && numberOf(row) <= newestFile && files.every(({ name }) => name !== row.name)
  )
  if (changed.length + removed.length > 0) {
    const message = `The database was created by other migrations than this version has: ${namesOf([...changed, ...removed])} differ; start the version that created it`
    return yield* new MigrationRefused({ message })
  }
  // Applies nothing to a newer database, because older functions would break the replicas of the newer version.
  if (newestApplied > newestFile) return []
  const missing = files.filter((file) => !isApplied(file))
  return missing.length === 0 ? [] : files.filter((file) => missing.includes(file) || file.name === protection)
})

/** Files that create projections or objects that refer to projections. */
const projectionFiles: ReadonlySet<string> = new Set(["projections", "views", protection])

/**
 * If one of `tables` is missing in the schema `vatproof`, recreates it as an empty table, together with the objects that depend
 * on it.
 */
export const restore = Effect.fn("Migrations.restore")(function* (tables: ReadonlyArray<string>) {
  const sql = yield* SqlClient.SqlClient
  const find = SqlSchema.findAll({
    Request: Schema.String,
    Result: Schema.Struct({ name: Schema.String }),
    execute: (table) => sql`SELECT ${table}::text AS name WHERE to_regclass('vatproof.' || ${table}::text) IS NULL`
  })
  const missing = yield* Effect.forEach(tables, find)
  if (missing.flat().length === 0) return
  const files = (yield* migrationFiles()).filter(({ name }) => projectionFiles.has(name))
  yield* Effect.forEach(files, apply, { discard: true }).pipe(sql.withTransaction)
})

/** Applies the missing migration files while the layer is built. */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const applied = yield* run()
    if (applied.length > 0) yield* Effect.logInfo(`Applied ${applied.length} migrations: ${applied.join(", ")}`)
  })
)

/** `name` is the path below `migrations/` without ".sql". */
interface MigrationFile {
  readonly name: string
  readonly text: string
  readonly sha256: string
}

const migrationFiles = Effect.fnUntraced(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const directory = path.join(import.meta.dirname, "../../../migrations")
  const entries = (yield* fs.readDirectory(directory, { recursive: true })).toSorted()
  const inOrder = order.flatMap((pattern) => entries.filter((entry) => pattern.test(entry)))
  return yield* Effect.forEach(inOrder, (entry) =>
    Effect.map(fs.readFileString(path.join(directory, entry)), (text): MigrationFile => ({
      name: entry.replace(/\.sql$/u, ""),
      text,
      sha256: hash("sha256", text, "hex")
    }))
  )
})

const apply = Effect.fnUntraced(function* ({ name, sha256, text }: MigrationFile) {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(splitStatements(text), (statement) => sql.unsafe(statement).unprepared, { discard: true })
  yield* sql`INSERT INTO ${sql(qualified)} (name, sha256) VALUES (${name}, ${sha256})
    ON CONFLICT (name) DO UPDATE SET sha256 = excluded.sha256, applied_at = now()`
})

/**
 * Returns true if the table that records the applied files exists. Reads pg_class, because to_regclass may return a cached null
 * after another replica has created the table.
 */
const hasTable = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const find = SqlSchema.findAll({
    Request: Schema.String,
    Result: Schema.Struct({ found: Schema.Int }),
    execute: (name) =>
      sql`SELECT 1 AS found FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public' AND c.relname = ${name}`
  })
  return (yield* find(table)).length > 0
})

/** Returns the applied files. This is the first query on a database, so a wrong URL fails here, with `DatabaseNotReady`. */
const findApplied = Effect.fnUntraced(
  function* () {
    const sql = yield* SqlClient.SqlClient
    if (!(yield* hasTable)) return []
    const find = SqlSchema.findAll({
      Request: Schema.Void,
      Result: Schema.Struct({ name: Schema.String, sha256: Schema.String }),
      execute: () => sql`SELECT name, sha256 FROM ${sql(qualified)} ORDER BY name`
    })
    return yield* find(undefined)
  },
  Effect.catchTag("SqlError", (error) =>
    Effect.fail(new DatabaseNotReady({ message: `The database cannot be used: ${causeOf(error)}` }))
  )
)

/** Splits SQL at each `;` outside quotes, dollar quotes and comments, because the driver runs one statement at a time. */
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
