/** Whether requests may be sent here: from the moment the service listens until it is told to stop, while its database answers. */
import { Context, Deferred, Effect, Layer, MutableRef, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { Integrity, type IntegrityReport } from "#domain/audit/Integrity.ts"
import { Draining } from "#infra/server/Draining.ts"

/**
 * `database` is `unknown` before the service has started. What `notary` and `altered` tell an operator (Integrity.ts) takes no requests away
 * from a replica that serves: another replica has the same log.
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
    const known = yield* integrity.report
    if (check === null) return { ...known, service: "starting", database: "unknown" } satisfies ReadinessReport
    const service = (yield* Deferred.isDone(begun)) ? "stopping" : "serving"
    return { ...known, service, database: yield* check } satisfies ReadinessReport
  })
  return { report, serve: (check: DatabaseState) => Effect.sync(() => MutableRef.set(database, check)) }
})

export class Readiness extends Context.Service<Readiness, Effect.Success<typeof make>>()("vatproof/infra/server/Readiness") {
  static readonly layer = Layer.effect(Readiness, make)
}

/** A database that takes longer than this to say anything is no database to send requests to. */
const patience = "2 seconds"

/** Reachable and migrated: the row of the log comes with the first migration, and the start applies all of them. */
const makeCheck = Effect.map(SqlClient.SqlClient, (sql): DatabaseState => {
  const findLog = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({ found: Schema.Int }),
    execute: () => sql`SELECT 1 AS found FROM vatproof.logs WHERE log_id = 0`
  })
  return findLog(undefined).pipe(
    Effect.as("ok" as const),
    Effect.timeoutOrElse({ duration: patience, orElse: () => Effect.succeed("away" as const) }),
    Effect.catchTag(["SqlError", "SchemaError", "NoSuchElementError"], () => Effect.succeed("away" as const))
  )
})

/** Stands for "the service listens". */
export const layerServing = Layer.effectDiscard(
  Effect.gen(function* () {
    const { serve } = yield* Readiness
    yield* serve(yield* makeCheck)
  })
)
