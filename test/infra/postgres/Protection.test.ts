/** Tests that the service runs on a managed database without a superuser, and logs the missing protections. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Context, Effect, Layer, Logger, Redacted, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as Migrations from "#infra/postgres/Migrations.ts"
import * as Postgres from "#infra/postgres/Postgres.ts"
import * as Protection from "#infra/postgres/Protection.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import { assert, layer } from "#test/support/Test.ts"
import * as TestDatabase from "#test/support/TestDatabase.ts"
import * as Rows from "#test/support/Rows.ts"

const warnings = Effect.fnUntraced(function* (url: Redacted.Redacted) {
  const written: Array<string> = []
  const logger = Logger.make(({ logLevel, message }) => {
    if (logLevel === "Warn") written.push(String(message))
  })
  yield* Layer.build(
    Layer.fresh(Protection.layer).pipe(
      Layer.provide([Postgres.layer({ url, maxConnections: 1 }), NodeServices.layer]),
      Layer.provide(Logger.layer([logger]))
    )
  )
  return written
})

const migrate = (url: Redacted.Redacted) =>
  Migrations.run().pipe(
    Effect.provide([Postgres.layerAdministrator({ url, maxConnections: 1 }), NodeServices.layer], { local: true })
  )

/** The event store of a service that has just started. */
const storeOf = (url: Redacted.Redacted) =>
  EventStore.layer.pipe(
    Layer.fresh,
    Layer.provide(NodeCrypto.layer),
    Layer.provideMerge(Postgres.layer({ url, maxConnections: 2 }))
  )

/** Creates a role that owns the database and has no other rights. Returns the database's URL for the role. The scope drops the role. */
const ordinaryOwner = Effect.gen(function* () {
  const { name, url } = yield* TestDatabase.TestDatabase
  const sql = yield* SqlClient.SqlClient
  const role = `owner_of_${name}`
  const run = (statement: string) => sql.unsafe(statement).unprepared
  yield* Effect.acquireRelease(run(`CREATE ROLE ${role} LOGIN PASSWORD 'ordinary'`), () =>
    Effect.ignore(
      Effect.forEach([`REASSIGN OWNED BY ${role} TO CURRENT_USER`, `DROP OWNED BY ${role}`, `DROP ROLE ${role}`], run, {
        discard: true
      })
    )
  )
  yield* run(`ALTER DATABASE ${name} OWNER TO ${role}`)
  const own = new URL(Redacted.value(url))
  own.username = role
  own.password = "ordinary"
  return Redacted.make(own.href)
})

/** A database that an ordinary role owns and has migrated, and the URL of that role. */
class Owner extends Context.Service<Owner, { readonly url: Redacted.Redacted }>()("vatproof/test/Owner") {}

const migratedByOwner = Layer.effect(
  Owner,
  Effect.gen(function* () {
    const url = yield* ordinaryOwner
    yield* migrate(url)
    return { url }
  })
).pipe(Layer.provideMerge(TestDatabase.layerEmptyClient))

/** Owners and privileges of all objects, one per line; the migrating role is shown as "administrator". */
const rights = Effect.gen(function* () {
  return (yield* Rows.all(
    { line: Schema.String },
    (sql) => sql`WITH items AS (
        SELECT 'schema ' || nspname AS item, nspowner AS owner, coalesce(nspacl, acldefault('n', nspowner)) AS acl FROM pg_namespace
          WHERE nspname IN ('vatproof', 'vatproof_guard', 'audit')
        UNION ALL SELECT 'table ' || oid::regclass, relowner, coalesce(relacl, acldefault('r', relowner)) FROM pg_class
          WHERE relkind IN ('r', 'p', 'v') AND (relname = 'vatproof_migrations' OR relnamespace::regnamespace::text IN ('vatproof', 'audit'))
        UNION ALL SELECT 'function ' || oid::regprocedure, proowner, coalesce(proacl, acldefault('f', proowner)) FROM pg_proc
          WHERE pronamespace::regnamespace::text IN ('vatproof', 'vatproof_guard')
        UNION ALL SELECT 'event trigger ' || evtname || ' ' || evtenabled::text, evtowner, NULL FROM pg_event_trigger),
      told AS (SELECT oid, CASE WHEN rolname = current_user THEN 'administrator' ELSE rolname END AS name FROM pg_roles
        UNION ALL SELECT 0, 'PUBLIC')
      SELECT concat_ws(' ', i.item, 'of', o.name, (SELECT string_agg(concat_ws(' ', g.name, a.privilege_type), ', ' ORDER BY g.name, a.privilege_type)
        FROM aclexplode(i.acl) a JOIN told g ON g.oid = a.grantee)) AS line
      FROM items i JOIN told o ON o.oid = i.owner ORDER BY 1`
  )).map(({ line }) => line)
})

const append = Effect.flatMap(EventStore, ({ append }) =>
  append({
    stream: "s",
    expectedVersion: null,
    events: [{ type: "Tested", schemaVersion: 1, data: 1 }],
    charge: null
  })
)

layer(TestDatabase.layerClient, { excludeTestServices: true })("a service start on a database owned by a superuser", (it) => {
  it.effect("logs no warning", function* () {
    const { url } = yield* TestDatabase.TestDatabase
    assert.deepStrictEqual(yield* warnings(url), [])
  })
})

layer(migratedByOwner, { excludeTestServices: true })("a service start on a database owned by an ordinary role", (it) => {
  it.effect("succeeds, and logs how to enable each missing protection of the log", function* () {
    const { url } = yield* Owner
    const gaps = yield* warnings(url)
    assert.lengthOf(gaps, 3, gaps.join("\n"))
    for (const gap of gaps) assert.include(gap, "docs/operations/postgres/protect.sql")

    yield* Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      assert.strictEqual((yield* append).position, 0)
      // The owner of the tables has the right to change them, so only the triggers can reject the change.
      for (const statement of [
        "UPDATE vatproof.events SET data = '2'",
        "DELETE FROM vatproof.events",
        "TRUNCATE vatproof.events"
      ]) {
        assert.strictEqual((yield* Effect.exit(sql.unsafe(statement).unprepared))._tag, "Failure")
      }
    }).pipe(Effect.provide(storeOf(url), { local: true }))
  })

  it.effect(
    "logs no warning after an administrator has run protect.sql twice, and the service continues to append events",
    function* () {
      const { url } = yield* Owner
      const administrator = yield* SqlClient.SqlClient
      // Simulates an installation whose roles were created after the migrations and therefore have no grants.
      for (const what of [
        "SCHEMA vatproof",
        "SCHEMA audit",
        "ALL TABLES IN SCHEMA vatproof, audit",
        "ALL FUNCTIONS IN SCHEMA vatproof"
      ]) {
        yield* administrator.unsafe(`REVOKE ALL ON ${what} FROM vatproof_service, vatproof_auditor`).unprepared
      }
      const folder = "docs/operations/postgres"
      // Replaces the line `\ir <file>` with the content of the file, as psql does.
      const script = readFileSync(join(folder, "protect.sql"), "utf8").replace(/^\\ir (.+)$/mu, (_, path: string) =>
        readFileSync(join(folder, path), "utf8")
      )
      for (const _ of [1, 2]) {
        yield* Effect.forEach(Migrations.splitStatements(script), (statement) => administrator.unsafe(statement).unprepared)
      }
      assert.deepStrictEqual(yield* warnings(url), [])
      assert.deepStrictEqual(yield* rights, yield* Effect.provide(rights, TestDatabase.layerClient, { local: true }))
      assert.strictEqual((yield* Effect.provide(append, storeOf(url), { local: true })).position, 1)
      const asLogin = Postgres.layerAdministrator({ url, maxConnections: 1 })
      for (const statement of [
        "ALTER TABLE vatproof.events DISABLE TRIGGER append_only",
        "ALTER TABLE vatproof.logs OWNER TO CURRENT_USER",
        "DROP SCHEMA vatproof_guard CASCADE",
        "DROP TABLE vatproof_migrations"
      ]) {
        const attempt = Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(statement).unprepared)
        assert.strictEqual((yield* Effect.exit(Effect.provide(attempt, asLogin, { local: true })))._tag, "Failure", statement)
      }
      assert.deepStrictEqual(yield* migrate(url), [])
    }
  )
})
