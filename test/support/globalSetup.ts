/**
 * Provides one Postgres for the whole test run: the server of TEST_DATABASE_URL, else a container if a Docker engine answers, else the
 * embedded Postgres. The migrations run once, in a template database that TestDatabase.ts copies.
 */
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import * as NodeServices from "@effect/platform-node/NodeServices"
import {
  Config,
  Console,
  Context,
  Data,
  Effect,
  FileSystem,
  Layer,
  ManagedRuntime,
  Option,
  Path,
  Redacted,
  References,
  Result,
  Schema
} from "effect"
import { ChildProcess } from "effect/process"
import { SqlClient, SqlSchema } from "effect/sql"
import { tmpdir } from "node:os"
import type { TestProject } from "vitest/node"
import * as EmbeddedPostgres from "#infra/embedded-postgres/EmbeddedPostgres.ts"
import * as Migrations from "#infra/postgres/Migrations.ts"
import * as Postgres from "#infra/postgres/Postgres.ts"
import * as MemoryFolder from "#test/support/MemoryFolder.ts"

declare module "vitest" {
  interface ProvidedContext {
    /** The URL of a role that may create databases. The tests do not change the database of this URL. */
    readonly administratorUrl: string
    /** Prefix of the databases that the run creates on the server; the template has exactly this name. */
    readonly runName: string
  }
}

export const setup = (project: TestProject) =>
  runtime.runPromise(
    Effect.gen(function* () {
      const { url, description } = yield* TestServer
      yield* Console.log(`The tests use ${description}.`)
      project.provide("administratorUrl", Redacted.value(url))
      project.provide("runName", runName)
    })
  )

export const teardown = () => runtime.dispose()

interface Server {
  readonly url: Redacted.Redacted
  readonly description: string
}

class TestServer extends Context.Service<TestServer, Server>()("vatproof/support/TestServer") {}

class NoContainer extends Data.TaggedError("NoContainer")<{ readonly message: string }> {}

/**
 * Settings without durability, because test data need not survive a crash of the machine, and without autovacuum, because databases are
 * too short-lived for it.
 */
const settings = ["fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum=off", "max_connections=300"]
const flags = settings.flatMap((setting) => ["-c", setting])

const image = "postgres:17-alpine"

/** A program that looks for a Docker engine. It runs in a process of its own, because a hanging engine would keep this process alive. */
const askForEngine = `import("testcontainers").then((module) => module.getContainerRuntimeClient()).then(
  () => process.exit(0),
  () => process.exit(1)
)`

const engineAnswers = ChildProcess.make(process.execPath, ["--eval", askForEngine], {
  extendEnv: true,
  stdin: "ignore",
  stdout: "ignore",
  stderr: "ignore",
  killSignal: "SIGKILL"
}).pipe(
  Effect.flatMap(({ exitCode }) => exitCode),
  Effect.scoped,
  Effect.timeoutOption("3 seconds"),
  Effect.map(Option.contains(0))
)

const container = Effect.gen(function* () {
  if (!(yield* engineAnswers)) return yield* new NoContainer({ message: "no Docker engine answered" })
  const started = yield* Effect.acquireRelease(
    Effect.tryPromise(() =>
      // Imported only if an engine answered, because the import takes a second.
      import("@testcontainers/postgresql").then((module) =>
        new module.PostgreSqlContainer(image).withCommand(["postgres", ...flags]).start()
      )
    ).pipe(
      Effect.timeout("90 seconds"),
      Effect.mapError(() => new NoContainer({ message: `the Docker engine could not fetch or start ${image}` }))
    ),
    (running) =>
      Effect.ignore(
        Effect.timeout(
          Effect.tryPromise(() => running.stop()),
          "10 seconds"
        )
      )
  )
  return { url: Redacted.make(started.getConnectionUri()), description: `a container of ${image}` }
})

const folderPrefix = "vatproof-tests-"

const embedded = Effect.fnUntraced(function* (reason: string) {
  const fs = yield* FileSystem.FileSystem
  for (const folder of new Set([tmpdir(), yield* MemoryFolder.find])) yield* removeLeftovers(folder)
  const directory = yield* MemoryFolder.find
  const dir = yield* fs.makeTempDirectoryScoped({ directory, prefix: `${folderPrefix}${process.pid}-` })
  const { url } = yield* EmbeddedPostgres.make({ dir, flags })
  return { url, description: `the embedded Postgres: ${reason}` }
})

/** Stops the embedded Postgres that a killed test run left behind. A failure does not prevent the tests. */
const removeLeftovers = Effect.fnUntraced(
  function* (folder: string) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    for (const entry of yield* fs.readDirectory(folder)) {
      const pid = Number(/^vatproof-tests-(\d+)-/u.exec(entry)?.[1])
      const dir = path.join(folder, entry)
      if (Number.isNaN(pid) || Result.isSuccess(Result.try(() => process.kill(pid, 0)))) continue
      if (!Option.contains((yield* fs.stat(dir)).uid, process.getuid?.())) continue
      yield* Effect.ignore(Effect.scoped(EmbeddedPostgres.make({ dir, flags })))
      yield* fs.remove(dir, { recursive: true, force: true })
    }
  },
  (removal) => Effect.ignore(removal)
)

const server = Effect.gen(function* () {
  const given = yield* Config.option(Config.Redacted("TEST_DATABASE_URL"))
  if (Option.isSome(given)) return { url: given.value, description: "the Postgres of TEST_DATABASE_URL" } satisfies Server
  return yield* container.pipe(Effect.catchTag("NoContainer", ({ message }) => embedded(message)))
})

const runName = `vatproof_test_${process.pid}`

/** Creates the template database. The end of the scope drops it, and every database that a worker left behind. */
const withTemplate = Effect.gen(function* () {
  const started = yield* server
  const template = new URL(Redacted.value(started.url))
  template.pathname = `/${runName}`
  const asAdministrator = <A, E, R>(url: string, effect: Effect.Effect<A, E, R>) =>
    Effect.provide(effect, Postgres.layerAdministrator({ url: Redacted.make(url), maxConnections: 1 }), { local: true })
  yield* Effect.addFinalizer(() => Effect.ignore(asAdministrator(Redacted.value(started.url), dropDatabases)))
  yield* asAdministrator(Redacted.value(started.url), createTemplate)
  yield* asAdministrator(template.href, Migrations.run())
  return started
})

/** Creates the template database with a fixed collation, so that the order of rows is the same on every server. */
const createTemplate = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`CREATE DATABASE ${sql(runName)} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'`.unprepared
)

const dropDatabases = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const find = SqlSchema.findAll({
    Request: Schema.String,
    Result: Schema.Struct({ name: Schema.String }),
    execute: (prefix) => sql`SELECT datname AS name FROM pg_database WHERE starts_with(datname, ${prefix})`
  })
  const databases = yield* find(runName)
  yield* Effect.forEach(databases, ({ name }) => sql`DROP DATABASE IF EXISTS ${sql(name)} WITH (FORCE)`.unprepared)
})

const runtime = ManagedRuntime.make(
  Layer.effect(TestServer, withTemplate).pipe(
    Layer.provide([NodeServices.layer, NodeCrypto.layer, Layer.succeed(References.MinimumLogLevel, "Warn")])
  )
)
