import { NodeServices } from "@effect/platform-node"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { readdirSync } from "node:fs"
import { join } from "node:path"
import * as Migrations from "#infra/Migrations.ts"
import * as Postgres from "#infra/Postgres.ts"
import * as TestDatabase from "#test/support/TestDatabase.ts"

const files = readdirSync(join(import.meta.dirname, "../../migrations"))
  .map((file) => file.replace(/\.sql$/u, ""))
  .toSorted()

/** One replica that starts: it has a pool of its own. */
const migrate = Effect.gen(function* () {
  const { url } = yield* TestDatabase.TestDatabase
  const administrator = Postgres.layerAdministrator({ url, maxConnections: 2 })
  return yield* Migrations.run().pipe(Effect.provide([administrator, NodeServices.layer], { local: true }))
})

const schemas = Effect.gen(function* () {
  const { url } = yield* TestDatabase.TestDatabase
  const find = Effect.flatMap(SqlClient.SqlClient, (sql) =>
    SqlSchema.findAll({
      Request: Schema.Void,
      Result: Schema.Struct({ name: Schema.String }),
      execute: () => sql`SELECT nspname AS name FROM pg_namespace WHERE nspname LIKE 'vatproof%'`
    })(undefined)
  )
  return yield* find.pipe(Effect.provide(Postgres.layerAdministrator({ url, maxConnections: 1 }), { local: true }))
})

layer(TestDatabase.layer, { excludeTestServices: true })("the migrations", (it) => {
  it.effect("bring an empty database up to date, by whichever of several replicas comes first, and only once", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* schemas, [])
      const applied = yield* Effect.all([migrate, migrate, migrate, migrate], { concurrency: "unbounded" })
      assert.deepStrictEqual(applied.flat().toSorted(), files)
      assert.lengthOf(
        applied.filter((names) => names.length > 0),
        1
      )
      assert.deepStrictEqual(yield* migrate, [])
    })
  )
})

layer(TestDatabase.layer, { excludeTestServices: true })("the migrations of two databases of one server", (it) => {
  it.effect("do not get in each other's way over the roles they share", () =>
    Effect.gen(function* () {
      const elsewhere = Effect.scoped(migrate.pipe(Effect.provide(TestDatabase.layer, { local: true })))
      const applied = yield* Effect.all([migrate, elsewhere, elsewhere], { concurrency: "unbounded" })
      for (const names of applied) assert.deepStrictEqual(names.toSorted(), files)
    })
  )
})

describe("a migration", () => {
  it("is split into its commands", () => {
    const text = `-- a; comment
SELECT ';', $$ a; b $$, $x$ $$; $x$, "odd;name"; /* one; more */
CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM 1; END $$;

-- nothing but a comment;
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
