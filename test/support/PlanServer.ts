/** A PostgreSQL server that explains every statement of a service, collects no statistics, and uses generic plans. */
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { PgClient } from "@effect/sql-pg"
import { ConfigProvider, Context, Effect, FileSystem, Layer, Option, Redacted } from "effect"
import { dirname } from "node:path"
import * as Binaries from "#infra/embedded-postgres/Binaries.ts"
import * as Sandbox from "#test/support/Sandbox.ts"
import { make as makeServer } from "#test/faults/PostgresServer.ts"
import * as MailServer from "#test/support/MailServer.ts"
import * as MemoryFolder from "#test/support/MemoryFolder.ts"
import * as PlanLog from "#test/support/PlanLog.ts"
import * as TestDatabase from "#test/support/TestDatabase.ts"

/** The running server. `log` is the path of its log file. */
export class PlanServer extends Context.Service<PlanServer, { readonly log: string }>()("vatproof/support/PlanServer") {}

const settings = [
  ...PlanLog.settings,
  "autovacuum=off",
  "jit=off",
  "plan_cache_mode=force_generic_plan",
  "fsync=off",
  "full_page_writes=off",
  "max_wal_size=4GB",
  "shared_buffers=256MB"
]

/** The user of the server if the tests run as root, which Postgres refuses. */
const user = Option.liftPredicate({ uid: 65_534, gid: 65_534 }, () => process.getuid?.() === 0)

/** Returns the folder of the programs of a Postgres version in Debian. */
export const debianPrograms = (version: number) => `/usr/lib/postgresql/${version}/bin`

/** Returns the folder of the embedded Postgres's programs. */
export const embeddedPrograms = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const { postgres } = yield* Binaries.locate(yield* fs.makeTempDirectoryScoped(), user)
  return dirname(postgres)
})

/** Starts a server from the folder of its programs, with the layers that services require. */
export const layer = <E, R>(programs: Effect.Effect<string, E, R>) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const env = { PG_BIN: yield* programs }
      const fs = yield* FileSystem.FileSystem
      const directory = yield* MemoryFolder.find
      const folder = yield* fs.makeTempDirectoryScoped({ directory, prefix: "vatproof-plans-" })
      const server = yield* makeServer({ settings, folder }).pipe(
        Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env })))
      )
      const url = new URL(Redacted.value(server.url))
      url.searchParams.set("options", PlanLog.sessionOptions)
      return Layer.mergeAll(
        Layer.succeed(PlanServer, { log: `${server.folder}/log` }),
        Layer.succeed(TestDatabase.TestDatabase, yield* TestDatabase.describe(Redacted.make(url.href), "postgres")),
        PgClient.layer({ url: server.url, maxConnections: 4 })
      )
    })
  ).pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        MailServer.layer(),
        Sandbox.layer({ host: "127.0.0.1", port: 0 }),
        NodeHttpClient.layerUndici,
        NodeServices.layer,
        NodeCrypto.layerSecureRandom
      )
    )
  )
