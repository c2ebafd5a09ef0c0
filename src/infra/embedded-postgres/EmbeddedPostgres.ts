/**
 * Runs a Postgres that needs no installation, with its data in one folder.
 *
 * The server is a separate process. If the service crashes, the server keeps running, and the next service process adopts it.
 */
import { Cause, Context, Effect, Option, Redacted, Schedule, ScopedRef } from "effect"
import * as Worker from "#domain/concurrency/Worker.ts"
import { createServer } from "node:net"
import * as Cluster from "#infra/embedded-postgres/Cluster.ts"
import { EmbeddedPostgresError, fromPlatformError } from "#infra/embedded-postgres/EmbeddedPostgresError.ts"
import * as Server from "#infra/embedded-postgres/Server.ts"
import * as Session from "#infra/embedded-postgres/ServerSession.ts"

/** `url` contains the password. `adopted` is true if the server was already running. */
export class EmbeddedPostgres extends Context.Service<
  EmbeddedPostgres,
  { readonly url: Redacted.Redacted; readonly host: string; readonly port: number; readonly adopted: boolean }
>()("vatproof/infra/embedded-postgres/EmbeddedPostgres") {}

export interface EmbeddedPostgresOptions {
  /** The folder of the database and its log; created if missing. */
  readonly dir: string
  /** Default: a free port. A server that is already running keeps its port. */
  readonly port?: number | undefined
  /**
   * `own` (the default): this process is the only service on the database. It restarts a server that dies, and stops the server
   * at the end. `attach`: this process uses a running server or starts one. The last process that uses the server stops it.
   */
  readonly mode?: "own" | "attach"
  /** Additional settings for a newly started server, e.g. `["-c", "fsync=off"]`. */
  readonly flags?: ReadonlyArray<string>
}

/**
 * Starts the server, or adopts a running server. This takes seconds, or minutes if the server recovers from a crash. The message
 * of an error tells the operator what to do.
 */
export const make = Effect.fn("EmbeddedPostgres.make")(
  function* (options: EmbeddedPostgresOptions) {
    const cluster = yield* Cluster.prepare(options.dir)
    const mode = options.mode ?? "own"
    const joined = yield* Effect.acquireRelease(
      ScopedRef.fromAcquire(Effect.interruptible(join(cluster, mode, options))).pipe(Effect.retry(startRetry(options))),
      (ref) => Effect.flatMap(ScopedRef.get(ref), ({ session }) => leave(cluster, mode, session))
    )
    yield* Worker.loop("Trimming the log of Postgres", Server.trimLog(cluster), { schedule: Schedule.spaced("1 minute") })
    if (mode === "own") yield* Effect.forkScoped(keepServing(cluster, options, joined))
    const { adopted, session } = yield* ScopedRef.get(joined)
    const { port } = session.server
    yield* Effect.logInfo(
      `Postgres ${adopted ? "was already running" : "runs"} on ${Server.host}:${port} with the data in ${cluster.data}`
    )
    const url = `postgresql://${Cluster.name}:${Redacted.value(cluster.password)}@${Server.host}:${port}/${Cluster.name}`
    return { url: Redacted.make(url), host: Server.host, port, adopted }
  },
  Effect.catchTag("PlatformError", (cause) => Effect.fail(fromPlatformError(cause)))
)

interface Joined {
  readonly adopted: boolean
  readonly session: Session.EmbeddedPostgresSession
}

/** Finds or starts the server, and opens a session on it. */
const join = Effect.fnUntraced(
  function* (cluster: Cluster.EmbeddedPostgresCluster, mode: "own" | "attach", options: EmbeddedPostgresOptions) {
    const existing = yield* Server.find(cluster)
    if (Option.isSome(existing)) {
      const server = yield* Server.awaitReady(cluster, existing.value)
      return { adopted: true, session: yield* Session.open(cluster, server, mode) } satisfies Joined
    }
    const server = yield* Server.start(cluster, { port: options.port ?? (yield* freePort), flags: options.flags ?? [] })
    const session = yield* Session.open(cluster, server, mode).pipe(
      Effect.onError((cause) =>
        // Keeps the server running if another service has become its owner.
        isOwned(cause) ? Effect.void : Effect.ignore(Server.stop(cluster, server.pid))
      )
    )
    return { adopted: false, session } satisfies Joined
  },
  Effect.catchTag("PlatformError", (cause) => Effect.fail(fromPlatformError(cause)))
)

const isOwned = (cause: Cause.Cause<EmbeddedPostgresError>) =>
  Option.exists(Cause.findErrorOption(cause), (error) => error.reason === "owned")

/**
 * Retries a start for 10 s while a server is still starting or stopping, or if another program has taken the port that `freePort`
 * chose.
 */
const startRetry = (options: EmbeddedPostgresOptions) => ({
  schedule: Schedule.spaced("100 millis").pipe(Schedule.upTo({ duration: "10 seconds" })),
  while: ({ reason }: EmbeddedPostgresError) => reason === "not_ready" || (reason === "port_in_use" && options.port === undefined)
})

/**
 * The schedule of restarts after the server was killed. A restart may fail because the memory of the killed server is not
 * released yet, or because disk or memory is short.
 */
const restartSchedule = Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("10 seconds")]).pipe(
  Schedule.upTo({ duration: "10 minutes" })
)

const leave = Effect.fnUntraced(
  function* (cluster: Cluster.EmbeddedPostgresCluster, mode: "own" | "attach", session: Session.EmbeddedPostgresSession) {
    if (mode === "own" || (yield* Session.leaveAsLast(session))) yield* Server.stop(cluster, session.server.pid)
  },
  Effect.catchTag("PlatformError", (error) => Effect.logWarning("Postgres could not be stopped", error))
)

/** Restarts a server on its port after it was killed, for example because the machine ran out of memory. */
const keepServing = Effect.fnUntraced(function* (
  cluster: Cluster.EmbeddedPostgresCluster,
  options: EmbeddedPostgresOptions,
  joined: ScopedRef.ScopedRef<Joined>
) {
  const { port } = (yield* ScopedRef.get(joined)).session.server
  const rejoin = ScopedRef.set(joined, Effect.interruptible(join(cluster, "own", { ...options, port }))).pipe(
    Effect.tapError((error) => Effect.logWarning(`Postgres could not be restarted yet: ${error.message}`)),
    Effect.retry(restartSchedule)
  )
  yield* Effect.flatMap(ScopedRef.get(joined), ({ session }) => Session.untilLost(session)).pipe(
    Effect.andThen(Effect.logWarning(`The Postgres of ${cluster.directory} ended; restarting it`)),
    Effect.andThen(rejoin),
    Effect.forever,
    Effect.catchTag("EmbeddedPostgresError", (error) =>
      Effect.logError(`Postgres could not be restarted, so the database stays unavailable: restart the service. ${error.message}`)
    )
  )
})

/** Asks the operating system for a free port. If another program takes this port first, the start is retried with a new port. */
const freePort = Effect.callback<number, EmbeddedPostgresError>((resume) => {
  const server = createServer()
  server.once("error", (cause) =>
    resume(Effect.fail(new EmbeddedPostgresError({ reason: "failed", message: `No port of ${Server.host} is free`, cause })))
  )
  server.listen(0, Server.host, () => {
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    server.close(() => resume(Effect.succeed(port)))
  })
})
