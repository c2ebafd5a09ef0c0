/**
 * Upgrades the database of the newest fixture under load to a version with one more migration, and goes back one version
 * (docs/operations/upgrades.md).
 */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gunzipSync } from "node:zlib"
import { Effect, Exit, Layer, Schema, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { splitStatements } from "#infra/postgres/Migrations.ts"
import * as Postgres from "#infra/postgres/Postgres.ts"
import * as SchemaComparison from "#infra/postgres/SchemaComparison.ts"
import * as Balancer from "#test/faults/Balancer.ts"
import * as Ledger from "#test/faults/Ledger.ts"
import * as Load from "#test/faults/Load.ts"
import * as Scenario from "#test/faults/Scenario.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"
import * as TestDatabase from "#test/support/TestDatabase.ts"
import * as Rows from "#test/support/Rows.ts"

const root = join(import.meta.dirname, "../..")
const fixtures = join(import.meta.dirname, "fixtures")
const newest = readdirSync(fixtures)
  .filter((name) => name.endsWith(".sql.gz"))
  .toSorted((a, b) => a.localeCompare(b, "en", { numeric: true }))
  .at(-1)

const onDatabase = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(TestDatabase.TestDatabase, ({ url }) =>
    // One connection, because a dump begins with settings of its session.
    Effect.provide(effect, Postgres.layerAdministrator({ url, maxConnections: 1 }), { local: true })
  )

/** Restores the fixture into the empty database. */
const restore = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const dump = gunzipSync(readFileSync(join(fixtures, newest ?? ""))).toString()
  yield* Effect.forEach(splitStatements(dump), (statement) => sql.unsafe(statement).unprepared, { discard: true })
}).pipe(onDatabase)

const Events = Schema.Struct({ types: Schema.Int, events: Schema.Int, digest: Schema.String })

/** Describes the first events of the log, at most `limit`. */
const eventsIn = Effect.fnUntraced(function* (limit: number) {
  return yield* Rows.one(
    Events.fields,
    (sql) => sql`SELECT count(DISTINCT type)::int AS types, count(*)::int AS events,
      encode(sha256(string_agg(concat(position, event_id, type, data, metadata), '' ORDER BY position)::bytea), 'hex') AS digest
      FROM vatproof.events WHERE position < ${limit}`
  )
}, onDatabase)

const withoutTotal = (defect: string) => defect.replace(/ of \d+ /u, " ")

/** A forward migration, which the previous version can work with. */
const planted = `CREATE TABLE vatproof.planted (planted_id bigint PRIMARY KEY);
ALTER TABLE vatproof.planted OWNER TO vatproof_owner;
ALTER TABLE vatproof.outbox ADD COLUMN planted text;
`

/** Copies the program into a folder, and adds a migration: the next version. */
const nextVersion = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "vatproof-next-"))
    for (const part of ["src", "migrations", "package.json"]) cpSync(join(root, part), join(folder, part), { recursive: true })
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
    const numbered = readdirSync(join(folder, "migrations")).filter((name) => /^\d{4}_/u.test(name))
    const name = `${String(numbered.length + 1).padStart(4, "0")}_expand_planted`
    writeFileSync(join(folder, "migrations", `${name}.sql`), planted)
    return { folder, name }
  }),
  ({ folder }) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

/** Chooses the ports of a replica. `run` replaces the replica on these ports by one of the version in a folder. */
const makeSlot = Effect.gen(function* () {
  const { url } = yield* TestDatabase.TestDatabase
  const target = { port: yield* RunningService.freePort, adminPort: yield* RunningService.freePort }
  const settings = { PORT: String(target.port), ADMIN_PORT: String(target.adminPort), SHUTDOWN_DELAY: "1s" }
  const outer = yield* Effect.scope
  let stop: Effect.Effect<void> = Effect.void
  const run = Effect.fnUntraced(function* (folder: string) {
    yield* Effect.suspend(() => stop)
    const scope = yield* Scope.fork(outer)
    const replica = yield* Scope.provide(Scenario.replica(url, settings, [], folder), scope)
    stop = Effect.gen(function* () {
      yield* replica.signal("SIGTERM")
      assert.strictEqual(yield* replica.ended, 0, yield* replica.output)
      yield* Scope.close(scope, Exit.void)
    })
    return replica
  })
  return { target, run }
})

layer(Layer.merge(RunningService.layerOutside, TestDatabase.layerEmpty), { excludeTestServices: true })(
  "a database of the newest fixture",
  (it) => {
    it.effect(
      "is upgraded under load beside the previous version, and works with the previous version again",
      function* () {
        const { url } = yield* TestDatabase.TestDatabase
        yield* restore
        const before = yield* eventsIn(1_000_000)
        assert.isAbove(before.types, 20)
        const { defects: known } = yield* Ledger.count(url, [])
        const current = yield* Scenario.command(url, "migrate")
        assert.strictEqual(current.code, 0, `${current.output}After a change of an unreleased migration: npm run fixture`)
        assert.strictEqual((yield* Scenario.command(url, "migrate", "--check")).code, 0)
        const [one, two] = [yield* makeSlot, yield* makeSlot]
        const first = yield* one.run(root)
        yield* two.run(root)
        const balancer = yield* Balancer.make([one.target, two.target])
        yield* balancer.ready(2)
        const key = yield* first.newKey
        const load = yield* Load.make({ baseUrl: balancer.baseUrl, key, name: "upgrade", perSecond: 300 })

        const next = yield* nextVersion
        const check = yield* Scenario.commandIn(next.folder, url, "migrate", "--check")
        assert.deepStrictEqual([check.code, check.output.includes(next.name)], [1, true], check.output)
        const migrated = yield* Scenario.commandIn(next.folder, url, "migrate")
        assert.deepStrictEqual([migrated.code, migrated.output.includes(`Applied: ${next.name}`)], [0, true], migrated.output)
        writeFileSync(join(next.folder, "migrations/schema.txt"), yield* onDatabase(SchemaComparison.description))
        for (const folder of [next.folder, root]) {
          for (const slot of [one, two]) {
            yield* slot.run(folder)
            yield* balancer.ready(2)
            yield* load.recovered
          }
        }
        const outcomes = yield* load.stop
        assert.deepStrictEqual(
          outcomes.filter((outcome) => !Load.isSuccess(outcome)),
          []
        )
        yield* Ledger.settled(url)
        const { acknowledged, defects, duplicates, lost } = yield* Ledger.count(url, outcomes)
        assert.deepStrictEqual({ acknowledged, duplicates, lost }, { acknowledged: outcomes.length, duplicates: 0, lost: 0 })
        // The fixture has a cancelled item, which the ledger of a load does not expect.
        assert.deepStrictEqual(defects.map(withoutTotal), known.map(withoutTotal))
        assert.isAbove(outcomes.length, 500)
        assert.deepStrictEqual(yield* eventsIn(before.events), before)
        const verified = yield* Scenario.commandIn(next.folder, url, "audit", "verify")
        assert.strictEqual(verified.code, 0, verified.output)
      },
      240_000
    )
  }
)
