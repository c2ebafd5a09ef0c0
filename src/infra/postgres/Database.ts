/** Selects the database, and opens connections to it for the service, its migrations and operator commands. */
import { Effect, FileSystem, Layer, Option, Path } from "effect"
import { AppConfig } from "#infra/config/AppConfig.ts"
import * as EmbeddedPostgres from "#infra/embedded-postgres/EmbeddedPostgres.ts"
import * as Migrations from "#infra/postgres/Migrations.ts"
import * as Postgres from "#infra/postgres/Postgres.ts"
import * as Workers from "#infra/workers/Workers.ts"

/** Size of a replica's pool. Concurrent requests share their statements (group commit), so few connections suffice. */
const maxConnections = 10

/**
 * Returns DATABASE_URL, or without this setting the URL of the embedded Postgres in DATA_DIR. With `attach`, this process shares
 * the server of a running service, or starts a server if there is none.
 */
export const databaseUrl = Effect.fnUntraced(function* (mode: "own" | "attach") {
  const config = yield* AppConfig
  if (Option.isSome(config.databaseUrl)) return config.databaseUrl.value
  const path = yield* Path.Path
  const { url } = yield* EmbeddedPostgres.make({ dir: path.resolve(config.dataDir, "postgres"), mode })
  return url
})

/** Migrates the database and opens the service's connections. */
export const layer = Layer.unwrap(
  Effect.gen(function* () {
    // A worker only attaches to the database, because the process that started the worker owns it.
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

/** Applies pending migrations and restores a changed schema, with or without a running service. Returns what it did. */
export const migrate = Effect.scoped(
  Effect.gen(function* () {
    const url = yield* databaseUrl("attach")
    const steps = Effect.all({ applied: Migrations.run(), repaired: Migrations.repair() })
    return yield* Effect.provide(steps, Postgres.layerAdministrator({ url, maxConnections: 2 }))
  })
)

/**
 * Returns the URL of the database for an operator command, with or without a running service. Fails if the database is missing or
 * its schema is older than this version: commands never create a database or change the schema.
 */
export const existingUrl = Effect.gen(function* () {
  const { dataDir, databaseUrl: configured } = yield* AppConfig
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const directory = path.resolve(dataDir, "postgres")
  if (Option.isNone(configured) && !(yield* fs.exists(directory))) {
    const message = `There is no database in ${directory}: start the service first, or set DATA_DIR or DATABASE_URL to the values of the service`
    return yield* new Migrations.DatabaseNotReady({ message })
  }
  const url = yield* databaseUrl("attach")
  yield* Effect.provide(Migrations.requireAll(), Postgres.layerAdministrator({ url, maxConnections: 1 }))
  return url
})

/** Opens the connections of an operator command. */
export const layerExisting = Layer.unwrap(Effect.map(existingUrl, (url) => Postgres.layer({ url, maxConnections: 2 })))
