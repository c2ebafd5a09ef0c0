/**
 * What one process holds of an embedded server: a connection and the locks on it.
 *
 * Advisory locks in the server end with the process that holds them, however it ends, and with the server itself. So nothing can
 * be left behind that a later start would have to judge, as with a lock file.
 */
import { PgConnection } from "@effect/sql-pg"
import { Effect, Queue } from "effect"
import { type SqlError } from "effect/sql/SqlError"
import { type EmbeddedPostgresCluster, name } from "#infra/embedded-postgres/Cluster.ts"
import { EmbeddedPostgresError } from "#infra/embedded-postgres/EmbeddedPostgresError.ts"
import { type EmbeddedPostgresServer, host } from "#infra/embedded-postgres/Server.ts"

export interface EmbeddedPostgresSession {
  readonly server: EmbeddedPostgresServer
  readonly connection: PgConnection.PgConnection
}

/** Held by the one service on this database. */
const ownerLock = { classId: 1_447_122_000, objectId: 1 }

/** Shared by everybody who uses the server; whoever can have it alone is the last. */
const userLock = { classId: 1_447_122_000, objectId: 2 }

type Lock = typeof ownerLock

/** `owned` if another service has the database, `not_ready` if the server went away meanwhile. */
export const open = Effect.fnUntraced(function* (
  cluster: EmbeddedPostgresCluster,
  server: EmbeddedPostgresServer,
  mode: "own" | "attach"
) {
  const connection = yield* PgConnection.make({
    host,
    port: server.port,
    username: name,
    password: cluster.password,
    database: "postgres",
    applicationName: `vatproof, process ${process.pid}`,
    // The connection of an owner that was killed may need a moment to be noticed.
    startupParameters: { lock_timeout: "3s" }
  }).pipe(Effect.mapError(refusal(cluster, server)))
  yield* connection
    .query("SELECT pg_advisory_lock_shared($1::int, $2::int)", keys(userLock))
    .pipe(Effect.mapError(refusal(cluster, server)))
  if (mode === "own") yield* takeOwnership(cluster, server, connection)
  return { server, connection } satisfies EmbeddedPostgresSession
})

/**
 * Ends this use of the server. True for the last one, and then nobody can begin to use it before the session ends. Of several who leave
 * at the same moment one is the last, because each lets go before it looks. A lost connection means that the server is gone.
 */
export const leaveAsLast = ({ connection }: EmbeddedPostgresSession) =>
  connection.query("SELECT pg_advisory_unlock_shared($1::int, $2::int)", keys(userLock)).pipe(
    Effect.andThen(connection.query("SELECT pg_try_advisory_lock($1::int, $2::int) AS last", keys(userLock))),
    Effect.map(({ rows }) => rows[0]?.["last"] === true),
    Effect.catchTag("SqlError", () => Effect.succeed(false))
  )

/** Completes when the connection breaks: a listener learns that at once, and nobody sends on this channel. */
export const untilLost = ({ connection }: EmbeddedPostgresSession) =>
  Effect.flatMap(connection.listen("vatproof"), (notifications) => Effect.forever(Queue.take(notifications))).pipe(
    Effect.scoped,
    Effect.catchTag("SqlError", () => Effect.void)
  )

const keys = (lock: Lock) => [lock.classId, lock.objectId]

const takeOwnership = Effect.fnUntraced(function* (
  cluster: EmbeddedPostgresCluster,
  server: EmbeddedPostgresServer,
  connection: PgConnection.PgConnection
) {
  yield* connection.query("SELECT pg_advisory_lock($1::int, $2::int)", keys(ownerLock)).pipe(
    Effect.catchTag("SqlError", (error) =>
      error.reason._tag === "LockTimeoutError"
        ? Effect.flatMap(ownerOf(connection), (owner) => Effect.fail(owned(cluster, owner)))
        : Effect.fail(error)
    ),
    Effect.catchTag("SqlError", (error) => Effect.fail(refusal(cluster, server)(error)))
  )
})

const ownerOf = (connection: PgConnection.PgConnection) =>
  connection
    .query(
      `SELECT application_name AS owner FROM pg_stat_activity JOIN pg_locks USING (pid)
       WHERE locktype = 'advisory' AND classid = $1::oid AND objid = $2::oid AND granted`,
      keys(ownerLock)
    )
    .pipe(Effect.map(({ rows }) => String(rows[0]?.["owner"] ?? "just ended")))

const owned = (cluster: EmbeddedPostgresCluster, owner: string) =>
  new EmbeddedPostgresError({
    reason: "owned",
    message:
      `Another service (${owner}) already runs on the database in ${cluster.directory}: ` +
      "stop it, or give this one a DATA_DIR of its own"
  })

const refusal = (cluster: EmbeddedPostgresCluster, server: EmbeddedPostgresServer) => (cause: SqlError) => {
  const which = `The Postgres on ${host}:${server.port} (process ${server.pid})`
  return cause.reason._tag === "AuthenticationError"
    ? new EmbeddedPostgresError({
        reason: "no_access",
        message: `${which} refuses the password in ${cluster.directory}: restore that file, or stop the server if it serves other data`,
        cause
      })
    : new EmbeddedPostgresError({ reason: "not_ready", message: `${which} does not answer`, cause })
}
