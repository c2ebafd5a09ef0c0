import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Schedule, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EventStore } from "#events/EventStore.ts"
import * as Maintenance from "#events/Maintenance.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"

const partitionSize = 2 ** 26

const names = Effect.fnUntraced(function* (statement: string) {
  const sql = yield* SqlClient.SqlClient
  const find = SqlSchema.findAll({
    Request: Schema.Void,
    Result: Schema.Struct({ name: Schema.String }),
    execute: () => sql.unsafe(statement)
  })
  return (yield* find(undefined)).map(({ name }) => name)
})

const partitions = names(
  "SELECT relname AS name FROM pg_class JOIN pg_inherits ON inhrelid = oid WHERE inhparent = 'vatproof.events'::regclass ORDER BY 1"
)

const append = (count: number) =>
  Effect.flatMap(EventStore, ({ append }) =>
    append({
      stream: "partitions",
      expectedVersion: null,
      events: [
        { type: "Tested", schemaVersion: 1, data: 0 },
        ...Array.from({ length: count - 1 }, (_, data) => ({ type: "Tested", schemaVersion: 1, data }))
      ],
      charge: null,
      latestOf: null
    })
  )

const setHead = (position: number) => MigratedDatabase.execute(`UPDATE vatproof.logs SET next_position = ${position}`)

const untilSwept = <A, R>(condition: Effect.Effect<boolean, A, R>) =>
  condition.pipe(Effect.repeat({ until: (isTrue) => isTrue, schedule: Schedule.spaced("10 millis") }))

layer(MigratedDatabase.layer, { excludeTestServices: true })("housekeeping", (it) => {
  it.effect("keeps two partitions ahead of the head, protected like the first", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* partitions, ["events_p0", "events_p1", "events_p2"])
      yield* setHead(partitionSize)
      yield* Effect.scoped(
        Effect.andThen(
          Layer.build(Layer.fresh(Maintenance.layer)),
          untilSwept(Effect.map(partitions, ({ length }) => length === 4))
        )
      )
      const unprotected =
        yield* names(`SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'vatproof.events'::regclass
        AND (SELECT count(*) FROM pg_trigger WHERE tgrelid = inhrelid AND tgname IN ('append_only', 'append_only_truncate') AND tgenabled = 'A') <> 2`)
      assert.deepStrictEqual(unprotected, [])
      yield* setHead(0)
    })
  )

  it.effect("by several replicas at once is harmless", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* setHead(3 * partitionSize)
      const turns = Array.from({ length: 6 }, () => sql`SELECT vatproof.ensure_partitions(0::smallint)`)
      yield* Effect.all(turns, { concurrency: "unbounded" })
      assert.lengthOf(yield* partitions, 6)
      yield* setHead(0)
    })
  )

  it.effect("lets an append cross from one partition into the next", () =>
    Effect.gen(function* () {
      yield* setHead(partitionSize - 2)
      assert.strictEqual((yield* append(4)).position, partitionSize - 2)
      const events = yield* EventStore
      assert.deepStrictEqual(
        (yield* events.readStream("partitions", 0, 10)).map(({ position }) => position - partitionSize),
        [-2, -1, 0, 1]
      )
      assert.deepStrictEqual(yield* names("SELECT tableoid::regclass::text AS name FROM vatproof.events ORDER BY position"), [
        "vatproof.events_p0",
        "vatproof.events_p0",
        "vatproof.events_p1",
        "vatproof.events_p1"
      ])
    })
  )

  it.effect("sweeps windows that ended, and no others", () =>
    Effect.gen(function* () {
      yield* MigratedDatabase.execute(`INSERT INTO vatproof.rate_windows (bucket, taken, ends_at)
        SELECT 'window ' || h, 1, now() + h * interval '1 hour' FROM unnest(ARRAY[-2, -1, 1]) AS h`)
      yield* MigratedDatabase.execute(`INSERT INTO vatproof.rate_places (bucket, taken_at, ends_at)
        SELECT 'place ' || h, '{}', now() + h * interval '1 hour' FROM unnest(ARRAY[-2, -1, 1]) AS h`)
      const left = names(
        "SELECT bucket AS name FROM vatproof.rate_windows UNION ALL SELECT bucket FROM vatproof.rate_places ORDER BY 1"
      )
      yield* Effect.scoped(
        Effect.andThen(Layer.build(Layer.fresh(Maintenance.layer)), untilSwept(Effect.map(left, ({ length }) => length === 2)))
      )
      assert.deepStrictEqual(yield* left, ["place 1", "window 1"])
    })
  )

  it.effect("spares a window that begins anew while it is being swept", () =>
    Effect.gen(function* () {
      yield* MigratedDatabase.execute("INSERT INTO vatproof.rate_windows VALUES ('renewed', 7, now() - interval '1 hour')")
      yield* MigratedDatabase.execute("INSERT INTO vatproof.rate_places VALUES ('next', '{}', now() - interval '1 hour')")
      const waiting = names(
        "SELECT 'x' AS name FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
      )
      const [isHeld, isWaiting] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const renewal = yield* Effect.forkScoped(
        MigratedDatabase.asAdministrator(
          Effect.flatMap(SqlClient.SqlClient, (sql) =>
            Effect.gen(function* () {
              yield* sql`UPDATE vatproof.rate_windows SET taken = 1, ends_at = now() + interval '1 minute' WHERE bucket = 'renewed'`
              yield* Deferred.succeed(isHeld, undefined)
              yield* Deferred.await(isWaiting)
            }).pipe(sql.withTransaction)
          )
        )
      )
      yield* Deferred.await(isHeld)
      yield* Layer.build(Layer.fresh(Maintenance.layer))
      yield* MigratedDatabase.asAdministrator(untilSwept(Effect.map(waiting, ({ length }) => length > 0)))
      yield* Deferred.succeed(isWaiting, undefined)
      yield* Fiber.join(renewal)
      const places = names("SELECT bucket AS name FROM vatproof.rate_places WHERE bucket = 'next'")
      yield* untilSwept(Effect.map(places, ({ length }) => length === 0))
      assert.deepStrictEqual(yield* names("SELECT bucket AS name FROM vatproof.rate_windows WHERE bucket = 'renewed'"), [
        "renewed"
      ])
    })
  )

  it.effect("forgets verification tokens long after they expired", () =>
    Effect.gen(function* () {
      const account = "0192f0c0-0000-7000-8000-000000000001"
      yield* MigratedDatabase.execute(
        `INSERT INTO vatproof.accounts (account_id, plan, created_at) VALUES ('${account}', 'free', now())`
      )
      yield* MigratedDatabase.execute(`INSERT INTO vatproof.contacts (account_id) VALUES ('${account}')`)
      yield* MigratedDatabase.execute(`INSERT INTO vatproof.verification_tokens (token_sha256, account_id, issued_at)
        SELECT sha256(days::text::bytea), '${account}', now() - days * interval '1 day' FROM unnest(ARRAY[0, 2, 89, 91]) AS days`)
      const left = names(
        "SELECT (now()::date - issued_at::date)::text AS name FROM vatproof.verification_tokens ORDER BY issued_at DESC"
      )
      yield* Effect.scoped(
        Effect.andThen(Layer.build(Layer.fresh(Maintenance.layer)), untilSwept(Effect.map(left, ({ length }) => length === 3)))
      )
      assert.deepStrictEqual(yield* left, ["0", "2", "89"])
    })
  )
})
