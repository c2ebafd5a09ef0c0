/** A fresh, empty database for one test file, on the server that globalSetup.ts provides. */
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import { PgClient, PgConnection } from "@effect/sql-pg"
import { Context, Effect, Layer, Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import { inject } from "vitest"

/** `url` is the database's, for a role that may do everything in it; `name` is the database's name. */
export class TestDatabase extends Context.Service<TestDatabase, { readonly url: Redacted.Redacted; readonly name: string }>()(
  "vatproof/support/TestDatabase"
) {}

/** As every server sorts and compares it: another collation would give another order on another server. */
const likeEverywhere = "TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'"

const make = Effect.gen(function* () {
  const administrator = new URL(inject("administratorUrl"))
  const random = yield* SecureRandom.SecureRandom
  const name = `test_${(yield* random.uuidV4()).replaceAll("-", "")}`
  const execute = (statement: string) =>
    Effect.scoped(
      Effect.flatMap(PgConnection.make({ url: Redacted.make(administrator.href) }), (connection) =>
        connection.query(statement, [], false)
      )
    )
  yield* Effect.acquireRelease(execute(`CREATE DATABASE ${name} ${likeEverywhere}`), () =>
    // A pool that is still closing its connections is no reason to keep the database.
    execute(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`).pipe(Effect.catchTag("SqlError", Effect.die))
  )
  const url = new URL(administrator)
  url.pathname = `/${name}`
  return { url: Redacted.make(url.href), name }
})

/** Creates the database, and drops it in the end. */
export const layer = Layer.effect(TestDatabase, make).pipe(Layer.provide(NodeCrypto.layerSecureRandom))

/** A pool of connections to a database of its own. */
export const layerClient = Layer.unwrap(Effect.map(TestDatabase, ({ url }) => PgClient.layer({ url, maxConnections: 8 }))).pipe(
  Layer.provideMerge(layer)
)
