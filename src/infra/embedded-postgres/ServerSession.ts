/**
 * The session of one process on an embedded server: a connection that holds advisory locks of Postgres.
 *
 * Postgres releases these locks when the process ends, even if it is killed, and when the server ends. A lock file would stay
 * behind.
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

/** The advisory lock that a service holds while it owns the database. */
const ownerLock = { classId: 1_447_122_000, objectId: 1 }

/**
 * The advisory lock that every process shares while it uses the server. If a process can take this lock exclusively, no other
 * process uses the server.
 */
const userLock = { classId: 1_447_122_000, objectId: 2 }

type Lock = typeof ownerLock

/** Opens a session. Fails with `owned` if another service owns the database, with `not_ready` if the server has stopped. */
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
    // Waits for the owner's lock, because the server needs a moment to notice that the former owner was killed.
    startupParameters: { search_path: "pg_catalog", lock_timeout: "3s" }
  }).pipe(Effect.mapError(refusal(cluster, server)))
  yield* connection
    .query("SELECT pg_advisory_lock_shared($1::int, $2::int)", keys(userLock))
    .pipe(Effect.mapError(refusal(cluster, server)))
  if (mode === "own") yield* takeOwnership(cluster, server, connection)
  return { server, connection } satisfies EmbeddedPostgresSession
})

/**
 * Ends the use of the server by this process. Returns true if no other process uses the server. The server then accepts no other
 * process until the session ends. Each process releases its lock before it looks for others, so if several processes leave at the
 * same time, one of them gets true. Returns false if the connection is lost, because the server has then stopped.
 */
export const leaveAsLast = ({ connection }: EmbeddedPostgresSession) =>
  connection.query("SELECT pg_advisory_unlock_shared($1::int, $2::int)", keys(userLock)).pipe(
    Effect.andThen(connection.query("SELECT pg_try_advisory_lock($1::int, $2::int) AS last", keys(userLock))),
    Effect.map(({ rows }) => rows[0]?.["last"] === true),
    Effect.catchTag("SqlError", () => Effect.succeed(false))
  )

/** Completes when the connection is lost. Listens on a channel without messages, because a listener notices the loss at once. */
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
      "stop it, or start this service with another DATA_DIR"
  })

const refusal = (cluster: EmbeddedPostgresCluster, server: EmbeddedPostgresServer) => (cause: SqlError) => {
  const which = `The Postgres on ${host}:${server.port} (process ${server.pid})`
  return cause.reason._tag === "AuthenticationError"
    ? new EmbeddedPostgresError({
        reason: "no_access",
        message: `${which} rejects the password in ${cluster.directory}/cluster/password: restore that file, or stop the server if it serves other data`,
        cause
      })
    : new EmbeddedPostgresError({ reason: "not_ready", message: `${which} does not answer`, cause })
}
