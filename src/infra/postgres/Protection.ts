/**
 * Checks at start which protections of the log this database lacks, and logs how an administrator can add them. Also logs what differs
 * from the schema of this program. The service starts nevertheless, because a wrong schema must not become an outage.
 */
import { Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { serviceRole } from "#infra/postgres/Postgres.ts"
import * as SchemaComparison from "#infra/postgres/SchemaComparison.ts"

/** Maximum number of differences of the schema that a start logs. */
const maxLogged = 50

const byCommands = 'run "vatproof audit verify", then "vatproof migrate"'
const byAdministrator = "as an administrator: run docs/operations/postgres/protect.sql"

/** Returns a sentence for each protection that the database lacks for the role of this connection. */
export const missing = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const find = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({
      role: Schema.Boolean,
      owner: Schema.Boolean,
      event_triggers: Schema.Boolean
    }),
    execute: () => sql`SELECT
      current_user = ${serviceRole} AS role,
      (SELECT bool_and(owner::regrole::text = 'vatproof_owner') FROM (
        SELECT nspowner FROM pg_namespace WHERE nspname = 'vatproof'
        UNION ALL SELECT relowner FROM pg_class WHERE relnamespace = 'vatproof'::regnamespace AND relkind IN ('r', 'p', 'v')
        UNION ALL SELECT proowner FROM pg_proc WHERE pronamespace = 'vatproof'::regnamespace) AS owned(owner)) AS owner,
      (SELECT count(*) = 3 FROM pg_event_trigger WHERE evtname LIKE 'vatproof_refuse_%' AND evtenabled = 'A') AS event_triggers`
  })
  const has = yield* find(undefined)
  return [
    ...(has.role
      ? []
      : [
          `the database role of the service may do more than append events; ${has.owner ? `as an administrator: GRANT ${serviceRole} TO <login role>` : byAdministrator}, then restart`
        ]),
    ...(has.owner
      ? []
      : [`not all tables, views and functions belong to vatproof_owner, a role without login; ${byAdministrator}, then restart`]),
    ...(has.event_triggers
      ? []
      : ["DROP, DETACH and DISABLE TRIGGER are not refused; as a superuser: run docs/operations/postgres/protect.sql"])
  ]
})

export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    for (const gap of yield* missing) yield* Effect.logWarning(`A protection of the log is missing: ${gap}`)
    for (const { message, object } of (yield* yield* SchemaComparison.load).slice(0, maxLogged))
      yield* Effect.logWarning(`The schema differs from this version's, ${byCommands}: ${object}: ${message}`)
  })
)
