/**
 * No statement of the service may read more rows than it needs, whatever statistics PostgreSQL has. The test reads the generic plans of the
 * statements of every endpoint on 200,000 events, in the oldest supported PostgreSQL and in the embedded one.
 */
import { assert, it } from "@effect/vitest"
import { Effect, type FileSystem, type Path, Schema, type Scope } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { existsSync } from "node:fs"
import * as Auditing from "#test/support/Auditing.ts"
import { operations } from "#test/support/Description.ts"
import * as EveryEndpoint from "#test/support/EveryEndpoint.ts"
import * as FilledLog from "#test/support/FilledLog.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { faultsOf } from "#test/support/PlanFaults.ts"
import * as PlanLog from "#test/support/PlanLog.ts"
import * as PlanServer from "#test/support/PlanServer.ts"

const oldest = PlanServer.debianPrograms(15)
const leftOut = `left out: the programs of PostgreSQL 15 are not in ${oldest} (apt install postgresql-15)`

/**
 * Functions that the test requires to be called. Excludes immutable functions, which read no table, and functions that derive rows: they
 * read a range of events for the append, the projection runner and audits.
 */
const findFunctions = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  SqlSchema.findAll({
    Request: Schema.Void,
    Result: Schema.Struct({ name: Schema.String }),
    execute: () => sql`SELECT proname AS name FROM pg_proc WHERE pronamespace = 'vatproof'::regnamespace
      AND prorettype <> 'trigger'::regtype AND provolatile <> 'i' AND proname NOT LIKE '%\_rows' AND has_function_privilege('vatproof_service', oid, 'EXECUTE') ORDER BY proname`
  })(undefined)
)

/** Resets the statistics to those of tables that were never analyzed. */
const forgetStatistics = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`DELETE FROM pg_statistic WHERE starelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'vatproof'::regnamespace)`
  yield* sql`UPDATE pg_class SET relpages = 0, reltuples = -1 WHERE relnamespace = 'vatproof'::regnamespace AND relkind IN ('r', 'p')`
})

/** True if the event index contains the whole log. */
const isIndexCurrent = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({ current: Schema.Boolean }),
    execute: () => sql`SELECT p.position = l.next_position AS current
      FROM vatproof.projections p JOIN vatproof.logs l USING (log_id) WHERE p.name = 'event_index'`
  })(undefined)
).pipe(Effect.map(({ current }) => current))

const explainAll = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { log } = yield* PlanServer.PlanServer
  const folder = yield* Auditing.temporaryFolder
  const start = RunningService.start({ ...Auditing.signing(folder), ...EveryEndpoint.settings })

  const first = yield* start
  const busy = yield* EveryEndpoint.makeBusy(first)
  // An index that lags behind the log would have statistics of fewer rows.
  yield* isIndexCurrent.pipe(Effect.repeat({ until: (is) => is }), Effect.timeout("30 seconds"))
  yield* sql`VACUUM ANALYZE`.unprepared
  const asked = yield* EveryEndpoint.drive(first, { busy, run: 1, isFilled: false })
  assert.deepStrictEqual([...asked].toSorted(), operations.map(({ name }) => name).toSorted())
  const before = yield* PlanLog.read(log, 0)

  yield* FilledLog.fill
  yield* Auditing.checkpointOf(first, FilledLog.fewest)
  yield* FilledLog.addCheckpoints
  yield* EveryEndpoint.drive(first, { busy, run: 2, isFilled: true })
  yield* first.stop
  const kept = yield* PlanLog.read(log, before.length)

  const second = yield* start
  yield* EveryEndpoint.drive(second, { busy, run: 3, isFilled: true })
  yield* second.stop
  const misled = yield* PlanLog.read(log, kept.length)

  yield* forgetStatistics
  const third = yield* start
  yield* EveryEndpoint.drive(third, { busy, run: 4, isFilled: true })
  const blind = yield* PlanLog.read(log, misled.length)

  const functions = (yield* findFunctions).map(({ name }) => name)
  const all = [before, kept, misled, blind].flatMap(({ explained }) => explained)
  const unseen = functions.filter((name) => !all.some(({ query }) => query.includes(`vatproof.${name}(`)))
  assert.deepStrictEqual(unseen, [], "functions that no statement called")

  const faults = (explained: ReadonlyArray<PlanLog.Explained>) => [...new Set(explained.flatMap(faultsOf))].toSorted()
  return {
    "with plans made when the tables were small": faults(kept.explained),
    "with statistics of small tables": faults(misled.explained),
    "without statistics": faults(blind.explained)
  }
})

const none = {
  "with plans made when the tables were small": [],
  "with statistics of small tables": [],
  "without statistics": []
}

/** The folder of a server's programs. */
type Programs = Effect.Effect<string, unknown, FileSystem.FileSystem | Path.Path | Scope.Scope>

const check = (programs: Programs) =>
  Effect.map(explainAll, (faults) => assert.deepStrictEqual(faults, none)).pipe(
    Effect.scoped,
    Effect.provide(PlanServer.layer(programs))
  )

const timeout = 120_000

it.live(
  "in the embedded PostgreSQL, the query plan of each statement reads no more rows than the statement needs",
  () => check(PlanServer.embeddedPrograms),
  timeout
)

it.live(
  "in PostgreSQL 15, the query plan of each statement reads no more rows than the statement needs",
  (context) => {
    context.skip(!existsSync(oldest), leftOut)
    return check(Effect.succeed(oldest))
  },
  timeout
)
