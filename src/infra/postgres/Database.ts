/** Selects the database, and opens connections to it for the service, its migrations and operator commands. */
import { Effect, FileSystem, Layer, Option, Path } from "effect"
import { AppConfig } from "#infra/config/AppConfig.ts"
import * as EmbeddedPostgres from "#infra/embedded-postgres/EmbeddedPostgres.ts"
import * as Migrations from "#infra/postgres/Migrations.ts"
import * as Postgres from "#infra/postgres/Postgres.ts"
import * as Workers from "#infra/workers/Workers.ts"

/** Connections per replica: batching needs few. */
const maxConnections = 10

/** The database URL: DATABASE_URL, otherwise the embedded server of DATA_DIR. `attach` uses the server of a running service. */
export const databaseUrl = Effect.fnUntraced(function* (mode: "own" | "attach") {
  const config = yield* AppConfig
  if (Option.isSome(config.databaseUrl)) return config.databaseUrl.value
  const path = yield* Path.Path
  const { url } = yield* EmbeddedPostgres.make({ dir: path.resolve(config.dataDir, "postgres"), mode })
  return url
})

/** Connections of the service to a migrated database. */
export const layer = Layer.unwrap(
  Effect.gen(function* () {
    // A worker's database belongs to the process that started it.
    const url = yield* databaseUrl(Workers.isWorker ? "attach" : "own")
    const { databaseWait } = yield* AppConfig
    const migrated = Migrations.layer.pipe(
      Layer.provide(Layer.effectDiscard(Postgres.waitForServer(databaseWait))),
      Layer.provide(Postgres.layerAdministrator({ url, maxConnections: 2 }))
    )
    // Closes the privileged connections after the migration; the service does not need them.
    yield* Effect.scoped(Layer.build(migrated))
    return Postgres.layer({ url, maxConnections })
  })
)

/** Applies pending migrations, with or without a running service; returns their names. */
export const migrate = Effect.scoped(
  Effect.gen(function* () {
    const url = yield* databaseUrl("attach")
    return yield* Effect.provide(Migrations.run(), Postgres.layerAdministrator({ url, maxConnections: 2 }))
  })
)

/**
 * The database of an operator command, with or without a running service. Commands never change the schema or create a database.
 */
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

/** Connections of an operator command. */
export const layerExisting = Layer.unwrap(Effect.map(existingUrl, (url) => Postgres.layer({ url, maxConnections: 2 })))
