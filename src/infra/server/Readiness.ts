/**
 * Whether this replica is ready for requests. It is ready from the moment it listens until it is told to stop, as long as its
 * database answers.
 */
import { Context, Deferred, Effect, Layer, MutableRef, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { Integrity, type IntegrityReport } from "#domain/audit/Integrity.ts"
import { Draining } from "#infra/server/Draining.ts"

/**
 * `database` is `unknown` before the service has started. `notary` and `altered` (Integrity.ts) are reports for operators. They
 * do not affect readiness, because all replicas have the same log.
 */
export interface ReadinessReport extends IntegrityReport {
  readonly service: "starting" | "serving" | "stopping"
  readonly database: "ok" | "away" | "unknown"
}

type DatabaseState = Effect.Effect<ReadinessReport["database"]>

const make = Effect.gen(function* () {
  const { begun } = yield* Draining
  const integrity = yield* Integrity
  const database = MutableRef.make<DatabaseState | null>(null)
  const report = Effect.gen(function* () {
    const check = database.current
    const problems = yield* integrity.report
    if (check === null) return { ...problems, service: "starting", database: "unknown" } satisfies ReadinessReport
    const service = (yield* Deferred.isDone(begun)) ? "stopping" : "serving"
    return { ...problems, service, database: yield* check } satisfies ReadinessReport
  })
  return { report, serve: (check: DatabaseState) => Effect.sync(() => MutableRef.set(database, check)) }
})

export class Readiness extends Context.Service<Readiness, Effect.Success<typeof make>>()("vatproof/infra/server/Readiness") {
  static readonly layer = Layer.effect(Readiness, make)
}

/** Timeout of the check of the database: a slower database cannot serve requests. */
const timeout = "2 seconds"

/**
 * Checks that the database is reachable and migrated. The check reads the row of the log, which the first migration creates. One
 * row is enough, because the service applies all migrations at its start.
 */
const makeCheck = Effect.map(SqlClient.SqlClient, (sql): DatabaseState => {
  const findLog = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({ found: Schema.Int }),
    execute: () => sql`SELECT 1 AS found FROM vatproof.logs WHERE log_id = 0`
  })
  return findLog(undefined).pipe(
    Effect.as("ok" as const),
    Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.succeed("away" as const) }),
    Effect.catchTag(["SqlError", "SchemaError", "NoSuchElementError"], () => Effect.succeed("away" as const))
  )
})

/** Marks the service as listening. */
export const layerServing = Layer.effectDiscard(
  Effect.gen(function* () {
    const { serve } = yield* Readiness
    yield* serve(yield* makeCheck)
  })
)
