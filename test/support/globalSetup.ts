/**
 * One Postgres for the whole run: the one in TEST_DATABASE_URL, else a container if a Docker engine answers, else the embedded
 * one. Every test file makes its own database in it (TestDatabase.ts).
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
  Result
} from "effect"
import { ChildProcess } from "effect/process"
import { tmpdir } from "node:os"
import type { TestProject } from "vitest/node"
import * as EmbeddedPostgres from "#infra/embedded-postgres/EmbeddedPostgres.ts"

declare module "vitest" {
  interface ProvidedContext {
    /** The URL of a role that may create databases. The database it names stays as it is. */
    readonly administratorUrl: string
  }
}

export const setup = (project: TestProject) =>
  runtime.runPromise(
    Effect.gen(function* () {
      const { url, description } = yield* TestServer
      yield* Console.log(`The tests use ${description}.`)
      project.provide("administratorUrl", Redacted.value(url))
    })
  )

export const teardown = () => runtime.dispose()

interface Server {
  readonly url: Redacted.Redacted
  readonly description: string
}

class TestServer extends Context.Service<TestServer, Server>()("vatproof/support/TestServer") {}

class NoContainer extends Data.TaggedError("NoContainer")<{ readonly message: string }> {}

/** What a test stores need not survive the machine. */
const settings = ["fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=200"]
const flags = settings.flatMap((setting) => ["-c", setting])

const image = "postgres:17-alpine"

/** testcontainers knows where an engine may be. It asks in a process of its own: an engine that hangs would keep this one open. */
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
      // Imported only here, because it takes a second.
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
  yield* removeLeftovers
  const dir = yield* fs.makeTempDirectoryScoped({ prefix: `${folderPrefix}${process.pid}-` })
  const { url } = yield* EmbeddedPostgres.make({ dir, flags })
  return { url, description: `the embedded Postgres: ${reason}` }
})

/** A run that was killed leaves a server behind: it is adopted in order to stop it. Not being able to is no reason not to test. */
const removeLeftovers = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  for (const entry of yield* fs.readDirectory(tmpdir())) {
    const pid = Number(/^vatproof-tests-(\d+)-/u.exec(entry)?.[1])
    const dir = path.join(tmpdir(), entry)
    if (Number.isNaN(pid) || Result.isSuccess(Result.try(() => process.kill(pid, 0)))) continue
    if (!Option.contains((yield* fs.stat(dir)).uid, process.getuid?.())) continue
    yield* Effect.ignore(Effect.scoped(EmbeddedPostgres.make({ dir, flags })))
    yield* fs.remove(dir, { recursive: true, force: true })
  }
}).pipe(Effect.ignore)

const server = Effect.gen(function* () {
  const given = yield* Config.option(Config.Redacted("TEST_DATABASE_URL"))
  if (Option.isSome(given)) return { url: given.value, description: "the Postgres of TEST_DATABASE_URL" } satisfies Server
  return yield* container.pipe(Effect.catchTag("NoContainer", ({ message }) => embedded(message)))
})

const runtime = ManagedRuntime.make(
  Layer.effect(TestServer, server).pipe(
    Layer.provide([NodeServices.layer, NodeCrypto.layer, Layer.succeed(References.MinimumLogLevel, "Warn")])
  )
)
