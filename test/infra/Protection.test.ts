/** On a managed database nobody is a superuser: the service runs all the same and says what is missing. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Logger, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { EventStore } from "#events/EventStore.ts"
import * as Migrations from "#infra/Migrations.ts"
import * as Postgres from "#infra/Postgres.ts"
import * as Protection from "#infra/Protection.ts"
import * as Randomness from "#infra/Randomness.ts"
import * as TestDatabase from "#test/support/TestDatabase.ts"

const warnings = Effect.fnUntraced(function* (url: Redacted.Redacted) {
  const written: Array<string> = []
  const logger = Logger.make(({ logLevel, message }) => {
    if (logLevel === "Warn") written.push(String(message))
  })
  yield* Layer.build(
    Layer.fresh(Protection.layer).pipe(
      Layer.provide(Postgres.layer({ url, maxConnections: 1 })),
      Layer.provide(Logger.layer([logger]))
    )
  )
  return written
})

const migrate = (url: Redacted.Redacted) =>
  Migrations.run().pipe(
    Effect.provide([Postgres.layerAdministrator({ url, maxConnections: 1 }), NodeServices.layer], { local: true })
  )

/** The database's URL for a new role that owns the database and may do nothing else; the role goes with the scope. */
const ordinaryOwner = Effect.gen(function* () {
  const { name, url } = yield* TestDatabase.TestDatabase
  const sql = yield* SqlClient.SqlClient
  const role = `owner_of_${name}`
  const run = (statement: string) => sql.unsafe(statement).unprepared
  yield* Effect.acquireRelease(run(`CREATE ROLE ${role} LOGIN PASSWORD 'ordinary'`), () =>
    Effect.ignore(
      Effect.forEach([`REASSIGN OWNED BY ${role} TO CURRENT_USER`, `DROP OWNED BY ${role}`, `DROP ROLE ${role}`], run, {
        discard: true
      })
    )
  )
  yield* run(`ALTER DATABASE ${name} OWNER TO ${role}`)
  const own = new URL(Redacted.value(url))
  own.username = role
  own.password = "ordinary"
  return Redacted.make(own.href)
})

const append = Effect.flatMap(EventStore, ({ append }) =>
  append({
    stream: "s",
    expectedVersion: null,
    events: [{ type: "Tested", schemaVersion: 1, data: 1 }],
    charge: null,
    latestOf: null
  })
)

layer(TestDatabase.layerClient, { excludeTestServices: true })("the start on a database whose owner may do everything", (it) => {
  it.effect("warns of nothing", () =>
    Effect.gen(function* () {
      const { url } = yield* TestDatabase.TestDatabase
      yield* migrate(url)
      assert.deepStrictEqual(yield* warnings(url), [])
    })
  )
})

layer(TestDatabase.layerClient, { excludeTestServices: true })(
  "the start on a database whose owner is an ordinary role",
  (it) => {
    it.effect("works, and says of each protection that is missing how to have it", () =>
      Effect.gen(function* () {
        const url = yield* ordinaryOwner
        yield* migrate(url)
        const gaps = yield* warnings(url)
        assert.lengthOf(gaps, 3, gaps.join("\n"))
        assert.match(
          gaps.join("\n"),
          /GRANT vatproof_service TO .*ALTER SCHEMA vatproof OWNER TO vatproof_owner.*CREATE EVENT TRIGGER/su
        )

        const service = EventStore.layer.pipe(
          Layer.fresh,
          Layer.provide(Randomness.layer),
          Layer.provideMerge(Postgres.layer({ url, maxConnections: 2 }))
        )
        yield* Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          assert.strictEqual((yield* append).position, 0)
          // The owner of the tables is no superuser, but could: what a row trigger sees is refused all the same.
          for (const statement of [
            "UPDATE vatproof.events SET data = '2'",
            "DELETE FROM vatproof.events",
            "TRUNCATE vatproof.events"
          ]) {
            assert.strictEqual((yield* Effect.exit(sql.unsafe(statement).unprepared))._tag, "Failure")
          }
        }).pipe(Effect.provide(service, { local: true }))
      })
    )
  }
)
