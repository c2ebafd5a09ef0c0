/** The connections to Postgres: one pool for the service, restricted to the service's role where the server has it. */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Redacted, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import * as PoolMetrics from "#infra/PoolMetrics.ts"

export interface PostgresOptions {
  readonly url: Redacted.Redacted
  /** Connections the pool may open. */
  readonly maxConnections: number
}

/** Bounds on what one statement and one forgotten transaction may take from everybody else. */
const sessionLimits = { statement_timeout: "15s", lock_timeout: "10s", idle_in_transaction_session_timeout: "5s" }

/** The role that may call `append` but not write the tables of the log (migrations/0003_protection.sql). */
export const serviceRole = "vatproof_service"

/** A pool as the login role of the URL: for migrations and administration. No statement time-out: a migration may take long. */
export const layerAdministrator = (options: PostgresOptions) =>
  PgClient.layer({
    url: options.url,
    maxConnections: options.maxConnections,
    applicationName: "vatproof-admin",
    connectTimeout: "5 seconds"
  })

/** The service's pool. Every session runs as `vatproof_service` if the login role is a member of it, else as the login role. */
export const layer = (options: PostgresOptions) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const restricted = yield* isMemberOfServiceRole(undefined)
      const client = PgClient.layer({
        url: options.url,
        ...addressOf(options.url),
        maxConnections: options.maxConnections,
        applicationName: "vatproof",
        connectTimeout: "5 seconds",
        startupParameters: restricted ? { ...sessionLimits, role: serviceRole } : sessionLimits
      })
      return Layer.merge(client, PoolMetrics.layer({ ...addressOf(options.url), maxConnections: options.maxConnections }))
    })
  ).pipe(Layer.provide(layerAdministrator({ ...options, maxConnections: 1 })))

/** What the URL says anyway, for the spans of statements, which would otherwise name a server on localhost. */
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
