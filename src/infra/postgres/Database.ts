/** Which database it is, and the connections to it: for the service, for its migrations, for an operator's command. */
import { Effect, FileSystem, Layer, Option, Path } from "effect"
import { AppConfig } from "#infra/config/AppConfig.ts"
import * as EmbeddedPostgres from "#infra/embedded-postgres/EmbeddedPostgres.ts"
import * as Migrations from "#infra/postgres/Migrations.ts"
import * as Postgres from "#infra/postgres/Postgres.ts"
import * as Workers from "#infra/workers/Workers.ts"

/** Connections a replica holds: batching needs few. */
const maxConnections = 10

/** The database's address: DATABASE_URL, else the embedded server of DATA_DIR. `attach` uses one that a service runs already. */
export const databaseUrl = Effect.fnUntraced(function* (mode: "own" | "attach") {
  const config = yield* AppConfig
  if (Option.isSome(config.databaseUrl)) return config.databaseUrl.value
  const path = yield* Path.Path
  const { url } = yield* EmbeddedPostgres.make({ dir: path.resolve(config.dataDir, "postgres"), mode })
  return url
})

/** Connections of the service on a migrated database. */
export const layer = Layer.unwrap(
  Effect.gen(function* () {
    // A worker's database belongs to the process that started it.
    const url = yield* databaseUrl(Workers.isWorker ? "attach" : "own")
    const { databaseWait } = yield* AppConfig
    const migrated = Migrations.layer.pipe(
      Layer.provide(Layer.effectDiscard(Postgres.waitForServer(databaseWait))),
      Layer.provide(Postgres.layerAdministrator({ url, maxConnections: 2 }))
    )
    // Its connections are closed when that is done: what serves needs none that may do more.
    yield* Effect.scoped(Layer.build(migrated))
    return Postgres.layer({ url, maxConnections })
  })
)

/** Applies what is pending, beside a running service or without one; gives back the names. */
export const migrate = Effect.scoped(
  Effect.gen(function* () {
    const url = yield* databaseUrl("attach")
    return yield* Effect.provide(Migrations.run(), Postgres.layerAdministrator({ url, maxConnections: 2 }))
  })
)

/** The database of an operator's command, beside a running service or without one. A command changes no schema and makes no database. */
export const existingUrl = Effect.gen(function* () {
  const { dataDir, databaseUrl: given } = yield* AppConfig
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const directory = path.resolve(dataDir, "postgres")
  if (Option.isNone(given) && !(yield* fs.exists(directory))) {
    const message = `There is no database in ${directory}: start the service first, or set DATA_DIR or DATABASE_URL as it has them`
    return yield* new Migrations.DatabaseNotReady({ message })
  }
  const url = yield* databaseUrl("attach")
  yield* Effect.provide(Migrations.requireAll(), Postgres.layerAdministrator({ url, maxConnections: 1 }))
  return url
})

/** Connections of an operator's command. */
export const layerExisting = Layer.unwrap(Effect.map(existingUrl, (url) => Postgres.layer({ url, maxConnections: 2 })))
