/** A new database for one test file, on the server that globalSetup.ts provides. */
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import { PgClient, PgConnection } from "@effect/sql-pg"
import { Context, Effect, Layer, Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import { inject } from "vitest"

/**
 * `url` connects with a role that has all rights in the database; `name` is the name of the database. `administrator` is a pool with that
 * role, which is opened at its first use and closed before the database is dropped.
 */
export class TestDatabase extends Context.Service<
  TestDatabase,
  {
    readonly url: Redacted.Redacted
    readonly name: string
    readonly administrator: Effect.Effect<SqlClient.SqlClient, SqlError>
  }
>()("vatproof/support/TestDatabase") {}

/** Describes a database. The end of the scope closes the administrator's pool. */
export const describe = Effect.fnUntraced(function* (url: Redacted.Redacted, name: string) {
  const pool = Layer.buildWithScope(PgClient.layer({ url, maxConnections: 4 }), yield* Effect.scope)
  const administrator = yield* Effect.cached(Effect.map(pool, (context) => Context.get(context, SqlClient.SqlClient)))
  return TestDatabase.of({ url, name, administrator })
})

const make = Effect.fnUntraced(function* (template: string) {
  const administrator = new URL(inject("administratorUrl"))
  const random = yield* SecureRandom.SecureRandom
  const name = `${inject("runName")}_${(yield* random.uuidV4()).replaceAll("-", "")}`
  const execute = (statement: string) =>
    Effect.scoped(
      Effect.flatMap(PgConnection.make({ url: Redacted.make(administrator.href) }), (connection) =>
        connection.query(statement, [], false)
      )
    )
  // A copy of the template's files takes a fifth of the processor time of a copy through the write-ahead log.
  yield* Effect.acquireRelease(execute(`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY file_copy`), () =>
    // Drops the database even if a pool is still closing its connections.
    execute(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`).pipe(Effect.catchTag("SqlError", Effect.die))
  )
  const url = new URL(administrator)
  url.pathname = `/${name}`
  return yield* describe(Redacted.make(url.href), name)
})

/** Creates a database with all migrations. The end of the scope drops it. */
export const layer = Layer.effect(
  TestDatabase,
  Effect.suspend(() => make(inject("runName")))
).pipe(Layer.provide(NodeCrypto.layerSecureRandom))

/** Creates a copy of a database of this run, to which nobody may be connected. The end of the scope drops the copy. */
export const layerCopy = (template: string) =>
  Layer.effect(TestDatabase, make(template)).pipe(Layer.provide(NodeCrypto.layerSecureRandom))

/** Creates a database without migrations. The end of the scope drops it. */
export const layerEmpty = Layer.effect(TestDatabase, make("template0 ENCODING 'UTF8' LOCALE 'C'")).pipe(
  Layer.provide(NodeCrypto.layerSecureRandom)
)

/** Provides a pool of connections to a given database. */
export const client = Layer.unwrap(Effect.map(TestDatabase, ({ url }) => PgClient.layer({ url, maxConnections: 8 })))

/** Provides a new database with all migrations, and a pool of connections to it. */
export const layerClient = client.pipe(Layer.provideMerge(layer))

/** Provides a new database without migrations, and a pool of connections to it. */
export const layerEmptyClient = client.pipe(Layer.provideMerge(layerEmpty))
