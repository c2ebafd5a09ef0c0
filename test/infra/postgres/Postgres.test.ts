import { Effect, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { assert, layer } from "#test/support/Test.ts"

class Refused extends Schema.TaggedError<Refused>()("Refused", {}) {}

/** Ends the connection of the current transaction. */
const endConnection = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const find = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({ pid: Schema.Int }),
    execute: () => sql`SELECT pg_backend_pid() AS pid`
  })
  const { pid } = yield* Effect.catchTag(find(undefined), ["SchemaError", "NoSuchElementError"], Effect.die)
  yield* MigratedDatabase.execute(`SELECT pg_terminate_backend(${pid}, 5000)`)
})

layer(MigratedDatabase.layer, { excludeTestServices: true })("a transaction whose connection ends", (it) => {
  it.effect("fails with the typed failure of its body, although ROLLBACK fails too", function* () {
    const sql = yield* SqlClient.SqlClient
    const body = Effect.andThen(endConnection, Effect.fail(new Refused({})))
    assert.deepStrictEqual(yield* Effect.flip(sql.withTransaction(body)), new Refused({}))
    assert.deepStrictEqual(yield* Effect.flip(sql.withTransaction(sql.withTransaction(body))), new Refused({}))
  })

  it.effect("fails with the typed error of COMMIT or RELEASE, if its body succeeded", function* () {
    const sql = yield* SqlClient.SqlClient
    const inner = sql.withTransaction(endConnection)
    for (const transaction of [inner, sql.withTransaction(inner)]) {
      assert.strictEqual(yield* Effect.flip(Effect.mapError(transaction, QueryPolicy.isTransient)), true)
    }
  })
})
