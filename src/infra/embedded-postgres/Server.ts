/** The server of one embedded database: whether it runs, its start, its end and its log. */
import { ByteSize, Duration, Effect, FileSystem, Option, Path, Result, Schedule, Schema } from "effect"
import { type EmbeddedPostgresCluster } from "#infra/embedded-postgres/Cluster.ts"
import { EmbeddedPostgresError, fromOutput } from "#infra/embedded-postgres/EmbeddedPostgresError.ts"
import { run, spawnDetached } from "#infra/embedded-postgres/Program.ts"

/** A server as its own `postmaster.pid` describes it. */
export interface EmbeddedPostgresServer {
  readonly pid: number
  readonly port: number
  /** `starting`, `ready` or `stopping`, in the server's own words. */
  readonly status: string
}

export const host = "127.0.0.1"

interface StartOptions {
  readonly port: number
  /** More settings, e.g. `["-c", "fsync=off"]`; they win over ours. */
  readonly flags: ReadonlyArray<string>
}

/** Recovery after a crash reads at most a few GiB of log. */
const startPatience: Duration.Input = "5 minutes"

const poll = Schedule.spaced("20 millis")

/**
 * The server that serves this database now. The process number in `postmaster.pid` proves nothing by itself: after a crash it
 * may belong to any program, so the program is looked at as well.
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
  // Unknown, or a server that somebody started in another way: Postgres refuses to start beside it if it serves this database.
  if (Option.isNone(command)) return Option.none<EmbeddedPostgresServer>()
  if (isPostgres(command.value)) return command.value.includes(cluster.data) ? described : Option.none<EmbeddedPostgresServer>()
  // The number was given to another program, and Postgres itself would take that for a server and not start.
  yield* fs.remove(file, { force: true })
  return Option.none<EmbeddedPostgresServer>()
})

/** Waits until a server that was found is ready; `not_ready` if it ends instead. */
export const awaitReady = Effect.fnUntraced(function* (cluster: EmbeddedPostgresCluster, server: EmbeddedPostgresServer) {
  const seen = yield* find(cluster).pipe(
    Effect.repeat({ schedule: poll, until: (found) => !isSame(found, server.pid) || isReady(found, server.pid) }),
    boundedBy(startPatience, cluster)
  )
  if (isReady(seen, server.pid)) return seen.value
  return yield* new EmbeddedPostgresError({
    reason: "not_ready",
    message: `The Postgres of ${cluster.directory} (process ${server.pid}) was stopping`
  })
})

/** Starts a server and waits until it is ready. When that fails or is interrupted no server is left behind. */
export const start = Effect.fn("Server.start")(function* (cluster: EmbeddedPostgresCluster, options: StartOptions) {
  const logSize = yield* sizeOf(cluster.log)
  const child = yield* spawnDetached(cluster.binaries.postgres, serverArguments(cluster, options), {
    cwd: cluster.data,
    user: cluster.user,
    log: cluster.log
  }).pipe(Effect.catchTag("ProgramFailed", (failed) => Effect.fail(fromOutput("Starting Postgres", failed.output, failed))))
  const pid = child.pid ?? -1
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  const seen = yield* find(cluster).pipe(
    Effect.repeat({ schedule: poll, until: (found) => hasEnded() || isReady(found, pid) }),
    boundedBy(startPatience, cluster),
    Effect.onError(() => Effect.sync(() => child.kill("SIGQUIT")))
  )
  if (isReady(seen, pid)) return seen.value
  return yield* Effect.fail(fromOutput("Starting Postgres", yield* textAfter(cluster.log, logSize)))
})

/** Ends the server if it is still this process: connections are closed at once, and what is committed is on the disk. */
export const stop = Effect.fn("Server.stop")(function* (cluster: EmbeddedPostgresCluster, pid: number) {
  for (const { signal, patience } of endings) {
    if (!isSame(yield* find(cluster), pid)) return
    // It may have ended since it was looked for.
    yield* Effect.ignore(Effect.try(() => process.kill(pid, signal)))
    yield* find(cluster).pipe(
      Effect.repeat({ schedule: poll, until: (found) => !isSame(found, pid) }),
      Effect.timeoutOption(patience)
    )
  }
  if (isSame(yield* find(cluster), pid)) {
    yield* Effect.logWarning(`The Postgres of ${cluster.directory} (process ${pid}) does not end: stop it by hand`)
  }
})

/** Fast, then immediate shutdown (https://www.postgresql.org/docs/18/server-shutdown.html, read 2026-11). */
const endings = [
  { signal: "SIGINT", patience: "10 seconds" },
  { signal: "SIGQUIT", patience: "5 seconds" }
] as const

const logLimit = ByteSize.mebibytes(8)

/** Keeps `log` at 8 MiB and the 8 MiB before it in `log.1`. The server appends, so the file can be emptied while it writes. */
export const trimLog = Effect.fnUntraced(function* (cluster: EmbeddedPostgresCluster) {
  const fs = yield* FileSystem.FileSystem
  if (ByteSize.isLessThan(yield* sizeOf(cluster.log), logLimit)) return
  // On a full disk the old lines are worth less than the space.
  yield* Effect.ignore(fs.copyFile(cluster.log, `${cluster.log}.1`))
  yield* fs.truncate(cluster.log)
})

const serverArguments = (cluster: EmbeddedPostgresCluster, options: StartOptions) => [
  "-D",
  cluster.dataArgument,
  "-p",
  String(options.port),
  // Postgres does not use the last one: it shows in the list of processes whose data this server has (see `find`).
  ...[...settings, `vatproof.data=${cluster.data}`].flatMap((setting) => ["-c", setting]),
  ...options.flags
]

const settings = [
  `listen_addresses=${host}`,
  // No second way in: a path of a socket may have 107 characters at most, and its folder may be out of the server's reach.
  "unix_socket_directories=",
  "max_connections=100",
  "shared_buffers=128MB",
  "fsync=on",
  "synchronous_commit=on",
  // The detail of an error holds values of rows; the log is not the place for them.
  "log_error_verbosity=terse"
]

const PidFile = Schema.Struct({
  pid: Schema.NumberFromString.check(Schema.isInt(), Schema.isGreaterThan(0)),
  port: Schema.NumberFromString.check(Schema.isInt(), Schema.isGreaterThan(0)),
  status: Schema.String
})

const decodePidFile = Schema.decodeUnknownOption(PidFile)

/** Lines 1, 4 and 8 (https://www.postgresql.org/docs/18/storage-file-layout.html and `pidfile.h`, read 2026-11). */
const describe = (text: string): Option.Option<EmbeddedPostgresServer> => {
  const lines = text.split("\n").map((line) => line.trim())
  return decodePidFile({ pid: lines[0], port: lines[3], status: lines[7] ?? "starting" })
}

const isSame = (found: Option.Option<EmbeddedPostgresServer>, pid: number) => Option.isSome(found) && found.value.pid === pid

const isReady = (found: Option.Option<EmbeddedPostgresServer>, pid: number): found is Option.Some<EmbeddedPostgresServer> =>
  Option.isSome(found) && found.value.pid === pid && found.value.status === "ready"

/** Not allowed to signal it (EPERM) means that it is there. */
const isAlive = (pid: number) => {
  const signalled = Result.try(() => process.kill(pid, 0))
  return Result.isSuccess(signalled) || String(signalled.failure).includes("EPERM")
}

/** The command line of a process, empty for one that has ended and waits for its parent; none if it may not be known. */
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

const boundedBy = (patience: Duration.Input, cluster: EmbeddedPostgresCluster) =>
  Effect.timeoutOrElse({
    duration: patience,
    orElse: () =>
      Effect.fail(
        new EmbeddedPostgresError({
          reason: "failed",
          message: `The Postgres of ${cluster.directory} is not ready after ${Duration.format(Duration.fromInputUnsafe(patience))}: see ${cluster.log}`
        })
      )
  })
