/**
 * The connections to Postgres: one pool for the service, and one for migrations and administration. The service's pool runs as
 * the role `vatproof_service` if the login role is a member of that role.
 */
import { PgClient } from "@effect/sql-pg"
import { Cause, Duration, Effect, Layer, Redacted, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { retryWhileBusy } from "#infra/postgres/RetryWhileBusy.ts"
import { causeOf, codeOf } from "#infra/postgres/SqlErrorCause.ts"
import * as PoolMetrics from "#infra/postgres/PoolMetrics.ts"

export interface PostgresOptions {
  readonly url: Redacted.Redacted
  /** Maximum pool size. */
  readonly maxConnections: number
}

/**
 * The search path of every session of the program. As a parameter of the session's start it overrides the settings of the database and
 * of the role. With another path, operators and functions of an attacker could replace those of Postgres. Names in other schemas are qualified.
 */
const sessionPath = { search_path: "pg_catalog" }

/** Limits of a session, so that a slow statement or a forgotten transaction does not block other sessions. */
const sessionLimits = { statement_timeout: "15s", lock_timeout: "10s", idle_in_transaction_session_timeout: "5s" }

/**
 * Makes the planner use indexes. Every statement has an index. A plan that was made for a small table would otherwise become slow
 * when the table grows. The SQL functions set the same options, because auditors call some functions in sessions without these
 * options.
 */
const sessionPlans = { enable_seqscan: "off", enable_bitmapscan: "off", jit: "off" }

/** The role that may call `append` but not write the tables of the log (migrations/protection.sql). */
export const serviceRole = "vatproof_service"

/**
 * Opens a pool whose transactions fail as their body failed, or with the typed error of the statement that ends them. On a lost
 * connection ROLLBACK and RELEASE fail too, and the driver then turns all failures into defects.
 */
const layerPool = (options: PgClient.PgPoolConfig) =>
  PgClient.layerFrom(
    Effect.map(PgClient.make(options), (client) => {
      const { withTransaction } = client
      const withTypedFailures = <A, E, R>(body: Effect.Effect<A, E, R>) =>
        Effect.suspend(() => {
          let failure: Cause.Cause<E> | undefined
          const noted = Effect.onError(body, (cause) => Effect.sync(() => void (failure = cause)))
          return Effect.catchCause(withTransaction(noted), (cause) => {
            if (failure !== undefined) return Effect.failCause(failure)
            const error = Cause.squash(cause)
            return isSqlError(error) ? Effect.fail(error) : Effect.failCause(cause)
          })
        })
      return Object.assign(client, { withTransaction: withTypedFailures })
    })
  )

/**
 * A pool for migrations and administration, which runs as the login role of the URL. Has no statement timeout, because a
 * migration may take long.
 */
export const layerAdministrator = (options: PostgresOptions) =>
  layerPool({
    url: options.url,
    maxConnections: options.maxConnections,
    applicationName: "vatproof-admin",
    connectTimeout: "5 seconds",
    startupParameters: sessionPath
  })

/** The service's pool. Sessions run as `vatproof_service` if the login role is a member of that role, else as the login role. */
export const layer = (options: PostgresOptions) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const administrator = layerAdministrator({ ...options, maxConnections: 1 })
      const restricted = yield* Effect.provide(isMemberOfServiceRole(undefined), administrator, { local: true })
      const client = layerPool({
        url: options.url,
        ...addressOf(options.url),
        maxConnections: options.maxConnections,
        applicationName: "vatproof",
        connectTimeout: "5 seconds",
        startupParameters: { ...sessionPath, ...sessionLimits, ...sessionPlans, ...(restricted ? { role: serviceRole } : {}) }
      })
      return Layer.merge(client, PoolMetrics.layer({ ...addressOf(options.url), maxConnections: options.maxConnections }))
    })
  )

/**
 * Waits until the server answers, at most for `retryFor`, because the server may start later than the service. Never fails: the
 * first query of the service reports a server that is still unavailable, and any other problem.
 */
export const waitForServer = Effect.fn("Postgres.waitForServer")(function* (retryFor: Duration.Duration) {
  if (Duration.isZero(retryFor)) return
  const sql = yield* SqlClient.SqlClient
  yield* sql`SELECT 1 AS found`.pipe(
    retryWhileBusy({
      while: isAbsent,
      every: pollEvery,
      retryFor,
      warning: (error) => `The database is not available yet; waiting for ${Duration.format(retryFor)}: ${causeOf(error)}`
    }),
    Effect.ignore
  )
})

const pollEvery = "500 millis"

/**
 * Returns true if the server does not listen or answer, has no free connection, or is starting or stopping (SQLSTATE 08…, 53300
 * and 57P…). Waiting does not fix other problems, such as a server without TLS.
 */
const isAbsent = (error: SqlError) => {
  const code = codeOf(error)
  if (code === "53300" || code.startsWith("57P")) return true
  const isNetworks = /^(?:E(?!RR_)[A-Z_]+|08\d{3})$/u.test(code) || /timed out|closed/u.test(error.reason.message)
  return error.reason._tag === "ConnectionError" && isNetworks
}

/** Returns the server's address from the URL, because the spans of statements would otherwise show localhost. */
const addressOf = (url: Redacted.Redacted) => {
  const { hostname, pathname, port, searchParams } = new URL(Redacted.value(url))
  if (hostname === "" || hostname.includes(",") || searchParams.has("host")) return {}
  const database = decodeURIComponent(pathname.slice(1))
  return {
    host: hostname.replace(/^\[|\]$/gu, ""),
    port: port === "" ? 5432 : Number(port),
    ...(database === "" ? {} : { database })
  }
}

const isMemberOfServiceRole = Effect.fnUntraced(function* (_: undefined) {
  const sql = yield* SqlClient.SqlClient
  const query = SqlSchema.findOne({
    Request: Schema.String,
    Result: Schema.Struct({ member: Schema.Boolean }),
    execute: (role) =>
      sql`SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = ${role} AND pg_has_role(current_user, oid, 'MEMBER')) AS member`
  })
  return (yield* query(serviceRole)).member
})
