/** The server process of one embedded database: its state, start, stop and log. */
import { ByteSize, Duration, Effect, FileSystem, Option, Path, Result, Schedule, Schema } from "effect"
import { type EmbeddedPostgresCluster } from "#infra/embedded-postgres/Cluster.ts"
import { EmbeddedPostgresError, fromOutput } from "#infra/embedded-postgres/EmbeddedPostgresError.ts"
import { run, spawnDetached } from "#infra/embedded-postgres/Program.ts"

/** A server, as described in its file `postmaster.pid`. */
export interface EmbeddedPostgresServer {
  readonly pid: number
  readonly port: number
  /** The state of the server in `postmaster.pid`: `starting`, `ready` or `stopping`. */
  readonly status: string
}

export const host = "127.0.0.1"

interface StartOptions {
  readonly port: number
  /** Additional settings, e.g. `["-c", "fsync=off"]`; they override the `settings` below. */
  readonly flags: ReadonlyArray<string>
}

/** Timeout of a start. After a crash, a start reads up to a few GiB of write-ahead log. */
const startTimeout: Duration.Input = "5 minutes"

const poll = Schedule.spaced("20 millis")

/**
 * Finds the server of this database. After a crash, the process id in `postmaster.pid` may belong to any program, so the program
 * is checked as well.
 */
export const find = Effect.fnUntraced(function* (cluster: EmbeddedPostgresCluster) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const file = path.join(cluster.data, "postmaster.pid")
  const text = yield* fs.readFileString(file).pipe(
    Effect.catchIf(
      (error) => error.reason._tag === "NotFound",
      () => Effect.succeed("")
    )
  )
  const described = describe(text)
  if (Option.isNone(described) || !isAlive(described.value.pid)) return Option.none<EmbeddedPostgresServer>()
  const command = yield* commandOf(described.value.pid)
  // Reports no server if the command line of the process is unreadable. If the process is a server of this database, Postgres
  // refuses to start a second one.
  if (Option.isNone(command)) return Option.none<EmbeddedPostgresServer>()
  if (isPostgres(command.value)) return command.value.includes(cluster.data) ? described : Option.none<EmbeddedPostgresServer>()
  // Removes the file if another program has this process id. Postgres would mistake that program for a running server and refuse
  // to start.
  yield* fs.remove(file, { force: true })
  return Option.none<EmbeddedPostgresServer>()
})

/** Waits until a server is ready. Fails with `not_ready` if the server ends instead. */
export const awaitReady = Effect.fnUntraced(function* (cluster: EmbeddedPostgresCluster, server: EmbeddedPostgresServer) {
  const result = yield* find(cluster).pipe(
    Effect.repeat({ schedule: poll, until: (current) => !isSame(current, server.pid) || isReady(current, server.pid) }),
    boundedBy(startTimeout, cluster)
  )
  if (isReady(result, server.pid)) return result.value
  return yield* new EmbeddedPostgresError({
    reason: "not_ready",
    message: `The Postgres of ${cluster.directory} (process ${server.pid}) stopped before it was ready`
  })
})

/** Starts a server and waits until it is ready. Leaves no server running on failure or interruption. */
export const start = Effect.fn("Server.start")(function* (cluster: EmbeddedPostgresCluster, options: StartOptions) {
  const logSize = yield* sizeOf(cluster.log)
  const child = yield* spawnDetached(cluster.binaries.postgres, serverArguments(cluster, options), {
    cwd: cluster.data,
    user: cluster.user,
    log: cluster.log
  }).pipe(Effect.catchTag("ProgramFailed", (failed) => Effect.fail(fromOutput("Starting Postgres", failed.output, failed))))
  const pid = child.pid ?? -1
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  const result = yield* find(cluster).pipe(
    Effect.repeat({ schedule: poll, until: (current) => hasEnded() || isReady(current, pid) }),
    boundedBy(startTimeout, cluster),
    Effect.onError(() => Effect.sync(() => child.kill("SIGQUIT")))
  )
  if (isReady(result, pid)) return result.value
  return yield* Effect.fail(fromOutput("Starting Postgres", yield* textAfter(cluster.log, logSize)))
})

/** Stops the server of this database if it still has the process id `pid`. Closes connections at once and loses no committed data. */
export const stop = Effect.fn("Server.stop")(function* (cluster: EmbeddedPostgresCluster, pid: number) {
  for (const { signal, timeout } of shutdownSignals) {
    if (!isSame(yield* find(cluster), pid)) return
    // Ignores the error if the process has just ended.
    yield* Effect.ignore(Effect.try(() => process.kill(pid, signal)))
    yield* find(cluster).pipe(
      Effect.repeat({ schedule: poll, until: (current) => !isSame(current, pid) }),
      Effect.timeoutOption(timeout)
    )
  }
  if (isSame(yield* find(cluster), pid)) {
    yield* Effect.logWarning(`The Postgres of ${cluster.directory} (process ${pid}) does not stop: stop it manually`)
  }
})

/** Signals for a fast, then an immediate shutdown (https://www.postgresql.org/docs/18/server-shutdown.html, read 2026-11). */
const shutdownSignals = [
  { signal: "SIGINT", timeout: "10 seconds" },
  { signal: "SIGQUIT", timeout: "5 seconds" }
] as const

const logLimit = ByteSize.mebibytes(8)

/**
 * Limits `log` and its predecessor `log.1` to 8 MiB each. The server has opened `log` for appending, so this process can truncate
 * it at any time.
 */
export const trimLog = Effect.fnUntraced(function* (cluster: EmbeddedPostgresCluster) {
  const fs = yield* FileSystem.FileSystem
  if (ByteSize.isLessThan(yield* sizeOf(cluster.log), logLimit)) return
  // Ignores a failed copy to `log.1`: on a full disk, free space is more important than old log lines.
  yield* Effect.ignore(fs.copyFile(cluster.log, `${cluster.log}.1`))
  yield* fs.truncate(cluster.log)
})

const serverArguments = (cluster: EmbeddedPostgresCluster, options: StartOptions) => [
  "-D",
  cluster.dataArgument,
  "-p",
  String(options.port),
  // Postgres ignores vatproof.data. The setting shows the data folder of the server in the process list, where `find` reads it.
  ...[...settings, `vatproof.data=${cluster.data}`].flatMap((setting) => ["-c", setting]),
  ...options.flags
]

const settings = [
  `listen_addresses=${host}`,
  // Disables Unix sockets: their path is limited to 107 characters, and the server may lack access to their folder.
  "unix_socket_directories=",
  "max_connections=100",
  "shared_buffers=128MB",
  "fsync=on",
  "synchronous_commit=on",
  // The detail of an error contains row values, which must not be logged.
  "log_error_verbosity=terse"
]

const PidFile = Schema.Struct({
  pid: Schema.NumberFromString.check(Schema.isInt(), Schema.isGreaterThan(0)),
  port: Schema.NumberFromString.check(Schema.isInt(), Schema.isGreaterThan(0)),
  status: Schema.String
})

const decodePidFile = Schema.decodeUnknownOption(PidFile)

/**
 * Parses the process id, port and status from lines 1, 4 and 8 of `postmaster.pid`
 * (https://www.postgresql.org/docs/18/storage-file-layout.html and `pidfile.h`, read 2026-11).
 */
const describe = (text: string): Option.Option<EmbeddedPostgresServer> => {
  const lines = text.split("\n").map((line) => line.trim())
  return decodePidFile({ pid: lines[0], port: lines[3], status: lines[7] ?? "starting" })
}

const isSame = (current: Option.Option<EmbeddedPostgresServer>, pid: number) =>
  Option.isSome(current) && current.value.pid === pid

const isReady = (current: Option.Option<EmbeddedPostgresServer>, pid: number): current is Option.Some<EmbeddedPostgresServer> =>
  Option.isSome(current) && current.value.pid === pid && current.value.status === "ready"

/** Returns whether the process exists: signal 0 tests it. EPERM also means that it exists. */
const isAlive = (pid: number) => {
  const signalled = Result.try(() => process.kill(pid, 0))
  return Result.isSuccess(signalled) || String(signalled.failure).includes("EPERM")
}

/** Returns the command line of a process: an empty text for a zombie process, none if the command line cannot be read. */
const commandOf = Effect.fnUntraced(function* (pid: number) {
  const fs = yield* FileSystem.FileSystem
  return process.platform === "linux"
    ? yield* Effect.option(fs.readFileString(`/proc/${pid}/cmdline`))
    : yield* Effect.option(run("/bin/ps", ["-ww", "-p", String(pid), "-o", "command="], { cwd: "/", user: Option.none() }))
})

const isPostgres = (command: string) => /(?:^|\/)postgres(?:\0|\s|$)/u.test(command)

const sizeOf = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  return (yield* fs.exists(file)) ? (yield* fs.stat(file)).size : ByteSize.zero
})

const textAfter = Effect.fnUntraced(function* (file: string, size: ByteSize.ByteSize) {
  const fs = yield* FileSystem.FileSystem
  return Buffer.from(yield* fs.readFile(file)).toString("utf8", Number(size))
})

const boundedBy = (timeout: Duration.Input, cluster: EmbeddedPostgresCluster) =>
  Effect.timeoutOrElse({
    duration: timeout,
    orElse: () =>
      Effect.fail(
        new EmbeddedPostgresError({
          reason: "failed",
          message: `The Postgres of ${cluster.directory} is not ready after ${Duration.format(Duration.fromInputUnsafe(timeout))}: see ${cluster.log}`
        })
      )
  })
