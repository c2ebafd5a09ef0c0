/** A rebuild restores each damaged projection from the events. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Arbitrary, type Array as Arr, Deferred, Effect, Fiber, Layer, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { logCatalogue } from "#app/layers/LogCatalogue.ts"
import * as ProjectionRebuild from "#events/log/projections/ProjectionRebuild.ts"
import { Projections } from "#events/log/projections/Projections.ts"
import { makeStep } from "#events/log/projections/Projection.ts"
import * as EventIndex from "#events/audit/EventIndex.ts"
import { tableProjections } from "#events/ProjectionCatalogue.ts"
import * as SourceHours from "#events/vat/SourceHours.ts"
import * as Migrations from "#infra/postgres/Migrations.ts"
import { texts } from "#test/support/Batches.ts"
import * as Histories from "#test/support/Histories.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { tamper } from "#test/support/Tampering.ts"
import { assert, layer } from "#test/support/Test.ts"

const names = tableProjections.map(({ name }) => name)
const definitions = [EventIndex.definition, SourceHours.definition]

const rebuild = (wanted: ReadonlyArray<string>, progress = () => Effect.void) =>
  MigratedDatabase.asAdministrator(
    Effect.andThen(Migrations.restore(names), ProjectionRebuild.run(new Set(wanted), definitions, progress))
  ).pipe(Effect.provide(NodeServices.layer))

/** Returns the content of the projections and of the log's row in vatproof.logs. */
const contents = texts(
  `SELECT 'log ' || (next_position, last_recorded_at)::text AS text FROM vatproof.logs
   UNION ALL SELECT concat_ws(' ', 'projection', name, version, position) FROM vatproof.projections
   ${tableProjections
     .map(
       ({ columns, key, name }) =>
         `UNION ALL SELECT '${name} ' || (${[...key, ...columns].join(", ")}, 0)::text FROM vatproof.${name}`
     )
     .join(" ")} ORDER BY 1`
)

const sumOf = (rebuilt: ReadonlyArray<ProjectionRebuild.Rebuilt>) =>
  rebuilt.reduce((sum, { different, missing, surplus }) => sum + different + missing + surplus, 0)

const damages: Arr.NonEmptyReadonlyArray<readonly [name: string, statement: (table: string) => string]> = [
  ["dropped", (table) => `DROP TABLE vatproof.${table} CASCADE`],
  ["emptied", (table) => `TRUNCATE vatproof.${table}`]
]

const testLayer = Projections.layer(definitions).pipe(Layer.provideMerge(Layer.merge(MigratedDatabase.layer, logCatalogue)))

layer(testLayer, { excludeTestServices: true })("A rebuild", (it) => {
  let run = 0
  const happened = new Set<string>()
  const happen = Effect.fnUntraced(function* (happenings: ReadonlyArray<Histories.Happening>) {
    yield* Histories.append(happened, happenings)
    const { upToDate } = yield* Projections
    yield* Effect.forEach([EventIndex.eventIndex, SourceHours.sourceHours], upToDate)
  })

  it.effect.prop(
    "restores all projections after they were dropped or emptied",
    [Arbitrary.array(Arbitrary.schema(Histories.Happening), { minLength: 40, maxLength: 80 })],
    ([happenings]) =>
      Effect.gen(function* () {
        yield* happen(happenings)
        const before = yield* contents
        const [damage, statement] = damages[(run += 1) % damages.length] ?? damages[0]
        for (const name of names) yield* MigratedDatabase.execute(statement(name))
        const rebuilt = yield* rebuild(names)
        assert.deepStrictEqual(yield* contents, before, damage)
        const rowsOf = (name: string) => before.filter((row) => row.startsWith(`${name} `)).length
        assert.deepStrictEqual(
          rebuilt,
          names.map((name) => ({ name, missing: rowsOf(name), surplus: 0, different: 0 }))
        )
      }),
    { arbitrary: { runs: damages.length } }
  )

  it.effect("counts and corrects missing, surplus and different rows, and corrects the log's next position", function* () {
    const before = yield* contents
    yield* MigratedDatabase.execute("UPDATE vatproof.logs SET next_position = next_position + 5, last_recorded_at = now()")
    yield* MigratedDatabase.execute("UPDATE vatproof.meters SET used = used + 1")
    yield* MigratedDatabase.execute("INSERT INTO vatproof.meters VALUES (0, 'made up', 1), (1, 'of another log', 1)")
    yield* MigratedDatabase.execute("DELETE FROM vatproof.event_index WHERE position = 0")
    yield* MigratedDatabase.execute(
      "INSERT INTO vatproof.event_index (log_id, position, type) VALUES (0, 1000000, 'X'), (1, 0, 'X')"
    )
    yield* MigratedDatabase.execute("UPDATE vatproof.source_hours SET calls = calls + 1")
    yield* MigratedDatabase.execute("INSERT INTO vatproof.source_hours VALUES (0, now(), 'XX', 'vies', 'answered', 1, 1, 1, 0)")
    const meters = before.filter((row) => row.startsWith("meters ")).length
    const rebuilt = yield* rebuild(names)
    assert.deepStrictEqual(
      rebuilt.filter((one) => sumOf([one]) > 0),
      [
        { name: "meters", missing: 0, surplus: 2, different: meters },
        { name: "event_index", missing: 1, surplus: 2, different: 0 },
        {
          name: "source_hours",
          missing: 0,
          surplus: 1,
          different: before.filter((row) => row.startsWith("source_hours ")).length
        }
      ]
    )
    assert.deepStrictEqual(yield* contents, before)
    assert.strictEqual(sumOf(yield* rebuild(names)), 0)
  })

  it.effect("has the same result when two rebuilds run concurrently, or when a service appends events meanwhile", function* () {
    const before = yield* contents
    for (const name of ["streams", "latest", "event_index", "source_hours"])
      yield* MigratedDatabase.execute(`DELETE FROM vatproof.${name}`)
    const both = yield* Effect.all([rebuild(names), rebuild(names)], { concurrency: "unbounded" })
    assert.deepStrictEqual(yield* contents, before)
    const rows = before.filter((row) => /^(?:streams|latest|event_index|source_hours) /u.test(row)).length
    assert.strictEqual(sumOf(both.flat()), rows)
    const busy = Effect.forever(
      happen([
        { kind: "repeated", who: 1, what: 1 },
        { kind: "live", who: 2, what: 2 }
      ])
    )
    assert.strictEqual(sumOf(yield* Effect.raceFirst(rebuild(names), busy)), 0)
  })

  it.effect("removes no row that a service inserts while the rebuild waits for the service's lock", function* () {
    yield* happen([])
    // Matches the statement of the rebuild, because the background projection may wait for the same lock. Within a transaction, Postgres
    // returns the same activity until the snapshot is cleared.
    const waiting = Effect.andThen(
      texts("SELECT pg_stat_clear_snapshot()::text AS text"),
      texts(
        "SELECT query AS text FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database() AND query LIKE 'INSERT INTO vatproof.projections %'"
      )
    ).pipe(Effect.repeat({ until: (rows) => rows.length > 0, schedule: Schedule.spaced("20 millis") }))
    const advance = Effect.flatMap(SqlClient.SqlClient, (sql) =>
      Effect.gen(function* () {
        yield* sql`SELECT FROM vatproof.projections WHERE name = ${EventIndex.eventIndex} FOR UPDATE`
        const fiber = yield* Effect.forkScoped(rebuild([EventIndex.eventIndex]))
        yield* waiting
        yield* Histories.append(happened, [{ kind: "repeated", who: 1, what: 1 }])
        const step = yield* makeStep
        yield* step(yield* EventIndex.definition)
        return fiber
      }).pipe(sql.withTransaction)
    )
    const fiber = yield* MigratedDatabase.asAdministrator(advance)
    assert.strictEqual(sumOf(yield* Fiber.join(fiber)), 0)
  })

  it.effect("leaves inline projections unchanged if it is interrupted, and can be repeated", function* () {
    yield* happen([])
    const before = yield* contents
    const isInline = (row: string) => !row.startsWith("event_index ")
    for (const name of names) yield* MigratedDatabase.execute(`DELETE FROM vatproof.${name}`)
    const damaged = (yield* contents).filter(isInline)
    const reached = yield* Deferred.make<void>()
    const halfWay = () => Effect.andThen(Deferred.succeed(reached, undefined), Effect.never)
    const fiber = yield* Effect.forkScoped(rebuild(names, halfWay))
    yield* Deferred.await(reached)
    yield* Fiber.interrupt(fiber)
    assert.deepStrictEqual((yield* contents).filter(isInline), damaged)
    yield* rebuild(names)
    assert.deepStrictEqual(yield* contents, before)
  })

  it.effect("fails if an event is missing in the log", function* () {
    yield* tamper("DELETE FROM vatproof.events WHERE position = 3")
    assert.containSubset(yield* Effect.flip(rebuild(["streams"])), { _tag: "LogGap", from: 0 })
  })
})
