/** A Postgres server of the system's packages that a scenario can stop, kill, freeze, copy and promote. */
import { Config, Effect, FileSystem, Option, Path, Redacted, Schedule } from "effect"
import { type ProgramFailed, run, type SystemUser } from "#infra/embedded-postgres/Program.ts"
import { ScenarioSkipped } from "#test/faults/Needs.ts"
import { freePort } from "#test/support/RunningService.ts"

/** The user of the server if the tests run as root: initdb and the server refuse to run as root. */
const unprivileged: SystemUser = { uid: 65_534, gid: 65_534 }
const user = Option.liftPredicate(unprivileged, () => process.getuid?.() === 0)

export interface PostgresServer {
  readonly folder: string
  readonly port: number
  /** URL of a superuser without a password. The server listens on the loopback interface only. */
  readonly url: Redacted.Redacted
  readonly start: Effect.Effect<void, ProgramFailed>
  /** `immediate` acts like a crash: it breaks connections, and the next start recovers from the write-ahead log. */
  readonly stop: (mode: "fast" | "immediate") => Effect.Effect<void, ProgramFailed>
  readonly promote: Effect.Effect<void, ProgramFailed>
  /** Freezes every process of the server; its connections stay open. */
  readonly freeze: Effect.Effect<void, ProgramFailed>
  readonly thaw: Effect.Effect<void, ProgramFailed>
  /** Process ids of the server, postmaster first; empty if it does not run. */
  readonly processes: Effect.Effect<ReadonlyArray<string>>
  /** Runs a program of Postgres with the server's address in its environment. */
  readonly program: (name: string, ...args: ReadonlyArray<string>) => Effect.Effect<string, ProgramFailed>
}

export interface PostgresServerOptions {
  /** Parent of the data folder. The default is a temporary folder. */
  readonly folder?: string
  readonly port?: number
  readonly settings?: ReadonlyArray<string>
  /** Keeps the configuration in `folder`/etc instead of the data folder, as Debian's packages do. */
  readonly separateConfiguration?: boolean
}

const configuration = ["postgresql.conf", "pg_hba.conf", "pg_ident.conf"]

/** Settings for a configuration in `folder`/etc. */
export const configurationIn = (folder: string) => [
  `config_file=${folder}/etc/postgresql.conf`,
  `hba_file=${folder}/etc/pg_hba.conf`,
  `ident_file=${folder}/etc/pg_ident.conf`
]

/** Settings of a small server, because several servers run at once. */
const settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "shared_buffers=64MB", "max_connections=60"]

/** Finds the folder of the server's programs: PG_BIN, else the newest version of Debian's packages. */
const programs = Effect.gen(function* () {
  const configured = yield* Config.option(Config.String("PG_BIN"))
  if (Option.isSome(configured)) return configured.value
  const fs = yield* FileSystem.FileSystem
  const versions = yield* fs.readDirectory("/usr/lib/postgresql").pipe(Effect.catchTag("PlatformError", () => Effect.succeed([])))
  const newest = versions.map(Number).toSorted((a, b) => b - a)[0]
  return newest === undefined
    ? yield* new ScenarioSkipped({
        message: "the scenario needs PostgreSQL's server package (apt install postgresql), or PG_BIN, the folder of its programs"
      })
    : `/usr/lib/postgresql/${newest}/bin`
})

/** Returns the handle of a server. The data folder may still be empty. */
const handleOf = Effect.fnUntraced(function* (folder: string, port: number, extra: ReadonlyArray<string>) {
  const fs = yield* FileSystem.FileSystem
  const bin = yield* programs
  const data = `${folder}/data`
  const environment = [
    `PATH=${bin}:/usr/bin:/bin`,
    "PGHOST=127.0.0.1",
    `PGPORT=${port}`,
    "PGUSER=postgres",
    "PGDATABASE=postgres"
  ]
  const execute = (file: string, args: ReadonlyArray<string>) =>
    run("/usr/bin/env", [...environment, file, ...args], { cwd: folder, user })
  const program = (name: string, ...args: ReadonlyArray<string>) => execute(name, args)
  const flags = [...settings, `port=${port}`, ...extra].map((setting) => `-c '${setting}'`).join(" ")
  const ctl = (...args: ReadonlyArray<string>) => Effect.asVoid(program("pg_ctl", "-D", data, "-w", "-t", "90", ...args))

  const read = (file: string) => Effect.orElseSucceed(fs.readFileString(file), () => "")
  const processes = Effect.gen(function* () {
    const [pid = ""] = (yield* read(`${data}/postmaster.pid`)).split("\n", 1)
    const children = yield* read(`/proc/${pid}/task/${pid}/children`)
    return [pid, ...children.split(" ")].filter((id) => id !== "")
  })
  const signalAll = Effect.fnUntraced(function* (signal: "STOP" | "CONT") {
    const pids = yield* processes
    if (pids.length > 0) yield* execute("sh", ["-c", `kill -${signal} ${pids.join(" ")}`])
  })

  const server: PostgresServer = {
    folder,
    port,
    url: Redacted.make(`postgresql://postgres@127.0.0.1:${port}/postgres`),
    program,
    start: ctl("-l", `${folder}/log`, "-o", flags, "start"),
    stop: (mode) => ctl("-m", mode, "stop"),
    promote: ctl("promote"),
    freeze: signalAll("STOP"),
    thaw: signalAll("CONT"),
    processes
  }
  return server
})

const ownFolder = Effect.fnUntraced(function* (options: PostgresServerOptions) {
  const fs = yield* FileSystem.FileSystem
  const folder = options.folder ?? (yield* fs.makeTempDirectoryScoped({ prefix: "vatproof-faults-" }))
  if (Option.isSome(user)) yield* fs.chown(folder, user.value.uid, user.value.gid)
  yield* fs.chmod(folder, 0o755)
  return folder
})

/** Stops the server at once, even if it is frozen. */
const shutDown = (server: PostgresServer) =>
  server.thaw.pipe(Effect.ignore, Effect.andThen(Effect.ignore(server.stop("immediate"))))

/** Creates and starts a server, which stops with the scope. */
export const make = Effect.fnUntraced(function* (options: PostgresServerOptions = {}) {
  const folder = yield* ownFolder(options)
  const apart = options.separateConfiguration === true ? configurationIn(folder) : []
  const server = yield* handleOf(folder, options.port ?? (yield* freePort), [...(options.settings ?? []), ...apart])
  yield* server.program(
    "initdb",
    "-D",
    `${folder}/data`,
    "-U",
    "postgres",
    "-A",
    "trust",
    "-E",
    "UTF8",
    "--locale=C",
    "--no-sync"
  )
  if (options.separateConfiguration === true) {
    yield* server.program("mkdir", `${folder}/etc`)
    yield* server.program("mv", ...configuration.map((file) => `${folder}/data/${file}`), `${folder}/etc`)
  }
  yield* Effect.acquireRelease(server.start, () => shutDown(server))
  return server
})

/** Starts a server on existing data in `folder`/data. It stops with the scope. */
export const open = Effect.fnUntraced(function* (folder: string, extra: ReadonlyArray<string> = []) {
  const server = yield* handleOf(folder, yield* freePort, extra)
  yield* Effect.acquireRelease(server.start, () => shutDown(server))
  return server
})

/** Starts a standby of `primary` with the name `standby`. Returns once the standby streams the write-ahead log. */
export const standbyOf = Effect.fnUntraced(function* (primary: PostgresServer) {
  const path = yield* Path.Path
  const folder = yield* ownFolder({})
  const connection = `host=127.0.0.1 port=${primary.port} user=postgres application_name=standby`
  yield* primary.program("pg_basebackup", "-D", path.join(folder, "data"), "-d", connection, "-R", "-X", "stream", "-c", "fast")
  const standby = yield* open(folder)
  yield* primary
    .program("psql", "-Atc", "SELECT state FROM pg_stat_replication WHERE application_name = 'standby'")
    .pipe(Effect.repeat({ schedule: Schedule.spaced("100 millis"), until: (state) => state.trim() === "streaming" }))
  return standby
})

/** Creates a temporary folder of the server's user, for shell scripts and copies. */
export const sharedFolder = ownFolder({})

/**
 * Runs a script as the server's user, with the server's address in its environment. As on Debian, PATH has only the client programs, and
 * the script must find the server programs.
 */
export const script = (server: PostgresServer, file: string, ...args: ReadonlyArray<string>) =>
  Effect.flatMap(programs, (bin) => {
    const path = bin.startsWith("/usr/lib/postgresql/") ? "/usr/bin:/bin" : `${bin}:/usr/bin:/bin`
    return server.program("env", `PATH=${path}`, "sh", file, ...args)
  })
