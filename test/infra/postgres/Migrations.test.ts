import * as NodeServices from "@effect/platform-node/NodeServices"
import { Deferred, Effect, Logger, MutableRef, type Redacted, Schedule, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { hash } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as Migrations from "#infra/postgres/Migrations.ts"
import * as Postgres from "#infra/postgres/Postgres.ts"
import * as LoginRole from "#test/support/LoginRole.ts"
import { asAdministrator, execute } from "#test/support/MigratedDatabase.ts"
import { assert, describe, it, layer } from "#test/support/Test.ts"
import * as TestDatabase from "#test/support/TestDatabase.ts"
import * as Rows from "#test/support/Rows.ts"

const folder = join(import.meta.dirname, "../../../migrations")
const namesIn = (path: string) =>
  readdirSync(join(folder, path))
    .filter((file) => file.endsWith(".sql"))
    .map((file) => join(path, file.replace(/\.sql$/u, "")))
    .toSorted()
const numbered = namesIn("").filter((name) => /^\d/u.test(name))
const files = [...numbered, "projections", ...namesIn("functions"), "views", "protection"]

const digestOf = (name: string) => hash("sha256", readFileSync(join(folder, `${name}.sql`), "utf8"), "hex")

/** Runs the migrations like a starting replica, with a connection pool of its own. */
const migrate = Effect.gen(function* () {
  const { url } = yield* TestDatabase.TestDatabase
  const administrator = Postgres.layerAdministrator({ url, maxConnections: 2 })
  return yield* Migrations.run().pipe(Effect.provide([administrator, NodeServices.layer], { local: true }))
})

const texts = Effect.fnUntraced(function* (query: string) {
  const find = Rows.all({ text: Schema.String }, (sql) => sql.unsafe(query))
  return (yield* asAdministrator(find)).map(({ text }) => text)
})

const schemas = texts("SELECT nspname AS text FROM pg_namespace WHERE nspname LIKE 'vatproof%'")
const tables = texts(
  "SELECT oid::regclass::text AS text FROM pg_class WHERE relnamespace::regnamespace::text !~ '^(pg_|information_)'"
)
const keptDigests = texts("SELECT name || ' ' || sha256 AS text FROM public.vatproof_migrations ORDER BY name")
const bodyOfCountCalls = texts("SELECT prosrc AS text FROM pg_proc WHERE oid = 'vatproof.count_calls'::regproc")
/** Owner and rights of a function. */
const rightsOf = (name: string) =>
  texts(`SELECT concat(proowner::regrole, ' ', proacl) AS text FROM pg_proc WHERE proname = '${name}'`)

/** Records that another version of the program applied its migration file `name`. */
const applyAnother = (name: string) =>
  execute(
    `INSERT INTO public.vatproof_migrations (name, sha256) VALUES ('${name}', 'other') ON CONFLICT (name) DO UPDATE SET sha256 = 'other'`
  )
const replaceCountCalls =
  execute(`CREATE OR REPLACE FUNCTION vatproof.count_calls(p_log smallint, p_epoch bigint[], p_meters text[],
  p_minutes text[], p_minute_calls bigint[]) RETURNS TABLE (epoch bigint, used bigint[], taken bigint[], ends_in_ms bigint[])
  LANGUAGE sql AS $$SELECT 0::bigint, '{}'::bigint[], '{}'::bigint[], '{}'::bigint[]$$`)

layer(TestDatabase.layerEmpty, { excludeTestServices: true })("the migrations", (it) => {
  it.effect(
    "are applied once by several concurrent replicas, even while another database of the server is migrated",
    function* () {
      assert.deepStrictEqual(yield* schemas, [])
      const elsewhere = Effect.scoped(migrate.pipe(Effect.provide(TestDatabase.layerEmpty, { local: true })))
      const [other, ...applied] = yield* Effect.all([elsewhere, migrate, migrate, migrate], { concurrency: "unbounded" })
      assert.deepStrictEqual(other, files)
      assert.deepStrictEqual(applied.flat(), files)
      assert.lengthOf(
        applied.filter((names) => names.length > 0),
        1
      )
      assert.deepStrictEqual(yield* migrate, [])
      assert.deepStrictEqual(
        yield* keptDigests,
        files.toSorted().map((name) => `${name} ${digestOf(name)}`)
      )
    }
  )
})

layer(TestDatabase.layerEmpty, { excludeTestServices: true })("a replica that waits while another one migrates", (it) => {
  it.effect("applies no migration, because it sees the migrations that the other replica has recorded", function* () {
    const rows = files.map((name) => `('${name}', '${digestOf(name)}')`).join(", ")
    const waiting = Effect.repeat(texts("SELECT pid::text AS text FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"), {
      until: (pids) => pids.length > 0
    })
    const other = Effect.flatMap(SqlClient.SqlClient, (sql) =>
      sql`SELECT pg_advisory_xact_lock(hashtextextended('vatproof_migrations', 0))`.pipe(
        Effect.andThen(Deferred.succeed(isHeld, undefined)),
        Effect.andThen(waiting),
        Effect.andThen(
          sql`CREATE TABLE public.vatproof_migrations (name text COLLATE "C" PRIMARY KEY, sha256 text NOT NULL,
            applied_at timestamptz NOT NULL DEFAULT now())`.unprepared
        ),
        Effect.andThen(sql.unsafe(`INSERT INTO public.vatproof_migrations (name, sha256) VALUES ${rows}`)),
        sql.withTransaction
      )
    )
    const isHeld = yield* Deferred.make<void>()
    const [, applied] = yield* Effect.all([asAdministrator(other), Effect.andThen(Deferred.await(isHeld), migrate)], {
      concurrency: 2
    })
    assert.deepStrictEqual(applied, [])
  })
})

layer(TestDatabase.layerEmpty, { excludeTestServices: true })("migrations of tables in use", (it) => {
  it.effect("stop waiting for a lock after two seconds, log a warning, and retry until they succeed", function* () {
    const said = MutableRef.make("")
    const keep = Logger.map(Logger.formatLogFmt, (line) => void MutableRef.update(said, (before) => before + line))
    const isSaid = Effect.sync(() => said.current.includes("Other sessions lock tables that the migrations 0001_roles, "))
    const untilSaid = Effect.repeat(isSaid, { until: (found) => found, schedule: Schedule.spaced("10 millis") })
    const [isHeld, applied] = [yield* Deferred.make<void>(), yield* Deferred.make<ReadonlyArray<string>>()]
    const other = Effect.flatMap(SqlClient.SqlClient, (sql) =>
      sql`CREATE SCHEMA vatproof`.unprepared.pipe(
        Effect.andThen(Deferred.succeed(isHeld, undefined)),
        Effect.andThen(untilSaid),
        Effect.andThen(Effect.fail("undone")),
        sql.withTransaction,
        Effect.ignore
      )
    )
    const migration = Deferred.await(isHeld).pipe(
      Effect.andThen(migrate),
      Effect.flatMap((names) => Deferred.succeed(applied, names)),
      Effect.provide(Logger.layer([keep]))
    )
    yield* Effect.all([asAdministrator(other), migration], { concurrency: "unbounded" })
    assert.deepStrictEqual(yield* Deferred.await(applied), files)
  })
})

/** Runs the migrations like a starting replica, with the role of `url`. */
const startAs = (url: Redacted.Redacted) =>
  Migrations.run().pipe(
    Effect.provide([Postgres.layerAdministrator({ url, maxConnections: 1 }), NodeServices.layer], { local: true })
  )

layer(TestDatabase.layerEmpty, { excludeTestServices: true })("a service with a login role that may not migrate", (it) => {
  it.effect("starts on a migrated database, and otherwise reports that an administrator must run the migrations", function* () {
    const { login, url } = yield* LoginRole.make
    const start = startAs(url)

    const refused = yield* Effect.flip(start)
    assert.strictEqual(refused._tag, "MigrationRefused")
    assert.match(refused.message, /^This role may not apply 0001_roles, .*: run "vatproof migrate" as the database's admin/u)
    yield* migrate
    yield* execute(`GRANT vatproof_service TO ${login}`)
    assert.deepStrictEqual(yield* start, [])
  })
})

layer(TestDatabase.layer, { excludeTestServices: true })("a database that was migrated by another version", (it) => {
  it.effect.each([
    [
      "newer than the running version",
      "INSERT INTO public.vatproof_migrations (name, sha256) VALUES ('9999_drop_this', '')",
      /newer .* lacks 9999_drop_this:/u
    ],
    [
      "renamed",
      "UPDATE public.vatproof_migrations SET name = '0002_other' WHERE name = '0002_log'",
      /other migrations .*: 0002_log, 0002_other differ/u
    ],
    [
      "different in content",
      "UPDATE public.vatproof_migrations SET sha256 = repeat('0', 64) WHERE name = '0003_accounts'",
      /other migrations .*: 0003_accounts differ/u
    ],
    ["missing", "DELETE FROM public.vatproof_migrations WHERE name = '0004_limits'", /other migrations .*: 0004_limits differ/u]
  ] as const)("is rejected by the service and by commands if a numbered migration is %s", ([, otherVersion, message]) =>
    Effect.gen(function* () {
      const { url } = yield* TestDatabase.TestDatabase
      const administrator = Postgres.layerAdministrator({ url, maxConnections: 1 })
      const errors = yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql.unsafe(otherVersion).unprepared
        return [yield* Effect.flip(Migrations.run()), yield* Effect.flip(Migrations.requireAll())]
      }).pipe(Effect.provide([administrator, NodeServices.layer], { local: true }))
      for (const error of errors) {
        assert.strictEqual(error._tag, "MigrationRefused")
        assert.match(error.message, message)
      }
    }).pipe(Effect.provide(TestDatabase.layer, { local: true }))
  )

  it.effect("keeps its newer functions when a compatible older version starts", function* () {
    yield* replaceCountCalls
    yield* applyAnother("functions/count_calls")
    yield* applyAnother("9999_expand_accounts")
    const newer = [yield* keptDigests, yield* bodyOfCountCalls]
    assert.deepStrictEqual(yield* migrate, [])
    assert.deepStrictEqual([yield* keptDigests, yield* bodyOfCountCalls], newer)
  })
})

layer(TestDatabase.layer, { excludeTestServices: true })("a SQL function that differs from its file", (it) => {
  it.effect("is replaced with the same owner and rights, and a missing function is created again", function* () {
    const [body, rights, digests] = [yield* bodyOfCountCalls, yield* rightsOf("count_calls"), yield* keptDigests]
    assert.deepStrictEqual(yield* rightsOf("acquire_slots"), rights)
    assert.match(rights.join(), /^vatproof_owner \{vatproof_owner=X\/vatproof_owner,vatproof_service=X\/vatproof_owner\}$/u)

    yield* replaceCountCalls
    yield* execute("DROP FUNCTION vatproof.acquire_slots")
    yield* applyAnother("functions/count_calls")
    yield* applyAnother("functions/acquire_slots")
    assert.deepStrictEqual(yield* migrate, ["functions/acquire_slots", "functions/count_calls", "protection"])
    assert.deepStrictEqual(yield* bodyOfCountCalls, body)
    assert.deepStrictEqual([yield* rightsOf("count_calls"), yield* rightsOf("acquire_slots")], [rights, rights])
    assert.deepStrictEqual(yield* keptDigests, digests)
  })
})

layer(TestDatabase.layerEmpty, { excludeTestServices: true })("a migration that fails", (it) => {
  it.effect("changes nothing, and reports the migration's name and the reason", function* () {
    yield* execute("CREATE SCHEMA vatproof CREATE TABLE contacts ()")
    const before = yield* tables
    const refused = yield* Effect.flip(migrate)
    assert.strictEqual(refused._tag, "MigrationRefused")
    assert.match(
      refused.message,
      /rejected the migrations \(0001_roles, .*\), and nothing was changed: relation "contacts" already exists/u
    )
    assert.deepStrictEqual([yield* schemas, yield* tables], [["vatproof"], before])
  })
})

describe("the text of a migration", () => {
  it("is split into its statements", () => {
    const text = `-- a; comment
SELECT ';', $$ a; b $$, $x$ $$; $x$, "odd;name"; /* one; more */
CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM 1; END $$;

-- no statement, only a comment;
`
    assert.deepStrictEqual(
      Migrations.splitStatements(text).map((statement) => statement.split("\n").at(-1)),
      [
        `SELECT ';', $$ a; b $$, $x$ $$; $x$, "odd;name"`,
        "CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM 1; END $$"
      ]
    )
  })
})
