import { Deferred, Effect, Fiber, Layer, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as Maintenance from "#events/Maintenance.ts"
import { texts } from "#test/support/Batches.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { assert, layer } from "#test/support/Test.ts"

const partitionSize = 2 ** 26

const partitions = texts(
  "SELECT relname AS text FROM pg_class JOIN pg_inherits ON inhrelid = oid WHERE inhparent = 'vatproof.events'::regclass ORDER BY 1"
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
      charge: null
    })
  )

/** Runs `effect` while another session has an open transaction in which it has run `statement`. */
const beside = Effect.fnUntraced(function* <A, E, R>(statement: string, effect: Effect.Effect<A, E, R>) {
  const [isBegun, isDone] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const other = yield* Effect.forkScoped(
    MigratedDatabase.asAdministrator(
      Effect.flatMap(SqlClient.SqlClient, (sql) =>
        Effect.gen(function* () {
          yield* sql.unsafe(statement).unprepared
          yield* Deferred.succeed(isBegun, undefined)
          yield* Deferred.await(isDone)
        }).pipe(sql.withTransaction)
      )
    )
  )
  yield* Deferred.await(isBegun)
  const result = yield* effect
  yield* Deferred.succeed(isDone, undefined)
  yield* Fiber.join(other)
  return result
}, Effect.scoped)

const setHead = (position: number) => MigratedDatabase.execute(`UPDATE vatproof.logs SET next_position = ${position}`)

const untilSwept = <A, R>(condition: Effect.Effect<boolean, A, R>) =>
  condition.pipe(Effect.repeat({ until: (isTrue) => isTrue, schedule: Schedule.spaced("10 millis") }))

layer(MigratedDatabase.layer, { excludeTestServices: true })("housekeeping", (it) => {
  it.effect("creates two partitions of the log in advance, with the same protection as the first one", function* () {
    assert.deepStrictEqual(yield* partitions, ["events_p0", "events_p1", "events_p2"])
    yield* setHead(partitionSize)
    yield* Effect.scoped(
      Effect.andThen(
        Layer.build(Layer.fresh(Maintenance.layer)),
        untilSwept(Effect.map(partitions, ({ length }) => length === 4))
      )
    )
    const unprotected =
      yield* texts(`SELECT inhrelid::regclass::text AS text FROM pg_inherits WHERE inhparent = 'vatproof.events'::regclass
        AND (SELECT count(*) FROM pg_trigger WHERE tgrelid = inhrelid AND tgname IN ('append_only', 'append_only_truncate') AND tgenabled = 'A') <> 2`)
    assert.deepStrictEqual(unprotected, [])
    yield* setHead(0)
  })

  it.effect("creates each partition once even if several replicas run housekeeping at the same time", function* () {
    const sql = yield* SqlClient.SqlClient
    yield* setHead(3 * partitionSize)
    const turns = Array.from({ length: 6 }, () => sql`SELECT vatproof.ensure_partitions(0::smallint)`)
    yield* Effect.all(turns, { concurrency: "unbounded" })
    assert.lengthOf(yield* partitions, 6)
    yield* setHead(0)
  })

  it.effect("creates partitions early enough for an append that fills one partition and begins the next", function* () {
    yield* setHead(partitionSize - 2)
    assert.strictEqual((yield* append(4)).position, partitionSize - 2)
    const events = yield* EventStore
    assert.deepStrictEqual(
      (yield* events.readStream("partitions", 0, 10)).map(({ position }) => position - partitionSize),
      [-2, -1, 0, 1]
    )
    assert.deepStrictEqual(yield* texts("SELECT tableoid::regclass::text AS text FROM vatproof.events ORDER BY position"), [
      "vatproof.events_p0",
      "vatproof.events_p0",
      "vatproof.events_p1",
      "vatproof.events_p1"
    ])
  })

  it.effect("deletes only expired rate windows and rate slots", function* () {
    yield* MigratedDatabase.execute(`INSERT INTO vatproof.rate_windows (bucket, taken, ends_at)
        SELECT 'window ' || h, 1, now() + h * interval '1 hour' FROM unnest(ARRAY[-2, -1, 1]) AS h`)
    yield* MigratedDatabase.execute(`INSERT INTO vatproof.rate_slots (bucket, taken_at, ends_at)
        SELECT 'place ' || h, '{}', now() + h * interval '1 hour' FROM unnest(ARRAY[-2, -1, 1]) AS h`)
    const left = texts(
      "SELECT bucket AS text FROM vatproof.rate_windows UNION ALL SELECT bucket FROM vatproof.rate_slots ORDER BY 1"
    )
    yield* Effect.scoped(
      Effect.andThen(Layer.build(Layer.fresh(Maintenance.layer)), untilSwept(Effect.map(left, ({ length }) => length === 2)))
    )
    assert.deepStrictEqual(yield* left, ["place 1", "window 1"])
  })

  it.effect("keeps a rate window that another transaction is renewing, and does not wait for that transaction", function* () {
    yield* MigratedDatabase.execute(
      "INSERT INTO vatproof.rate_windows SELECT w, 7, now() - interval '1 hour' FROM unnest(ARRAY['renewed', 'over']) AS w"
    )
    const left = texts("SELECT bucket AS text FROM vatproof.rate_windows WHERE bucket IN ('renewed', 'over')")
    yield* beside(
      "UPDATE vatproof.rate_windows SET taken = 1, ends_at = now() + interval '1 minute' WHERE bucket = 'renewed'",
      Effect.gen(function* () {
        yield* Layer.build(Layer.fresh(Maintenance.layer))
        yield* untilSwept(Effect.map(left, ({ length }) => length === 1))
      })
    )
    assert.deepStrictEqual(yield* left, ["renewed"])
  })

  it.effect("deletes all expired rate windows, even if there are more of them than one statement deletes", function* () {
    yield* MigratedDatabase.execute(`INSERT INTO vatproof.rate_windows
        SELECT 'many ' || n, 1, now() - interval '1 hour' FROM generate_series(1, 12000) AS n`)
    const left = texts("SELECT bucket AS text FROM vatproof.rate_windows WHERE bucket LIKE 'many %'")
    yield* Effect.scoped(
      Effect.andThen(Layer.build(Layer.fresh(Maintenance.layer)), untilSwept(Effect.map(left, ({ length }) => length === 0)))
    )
  })

  it.effect(
    "deletes expired rate windows and does not block appends while a long read delays the creation of a partition",
    function* () {
      yield* MigratedDatabase.execute("INSERT INTO vatproof.rate_windows VALUES ('beside', 7, now() - interval '1 hour')")
      const before = (yield* partitions).length
      const head = partitionSize * (before - 2)
      yield* setHead(head)
      yield* beside(
        "SELECT count(*) FROM vatproof.events",
        Effect.gen(function* () {
          yield* Layer.build(Layer.fresh(Maintenance.layer))
          const left = texts("SELECT bucket AS text FROM vatproof.rate_windows WHERE bucket = 'beside'")
          const appended = append(1).pipe(
            Effect.repeat({ while: () => Effect.map(left, ({ length }) => length === 1), schedule: Schedule.spaced("10 millis") })
          )
          assert.isAtLeast((yield* appended).position, head)
          assert.lengthOf(yield* partitions, before)
        })
      )
      yield* setHead(0)
    }
  )

  it.effect("deletes a mail token 90 days after its issue", function* () {
    const account = "0192f0c0-0000-7000-8000-000000000001"
    yield* MigratedDatabase.execute(
      `INSERT INTO vatproof.accounts (account_id, plan, created_at) VALUES ('${account}', 'free', now())`
    )
    yield* MigratedDatabase.execute(`INSERT INTO vatproof.contacts (account_id) VALUES ('${account}')`)
    yield* MigratedDatabase.execute(`INSERT INTO vatproof.mail_tokens (token_sha256, account_id, purpose, issued_at)
        SELECT sha256(days::text::bytea), '${account}', 'verify_email', now() - days * interval '1 day' FROM unnest(ARRAY[0, 2, 89, 91]) AS days`)
    const left = texts("SELECT (now()::date - issued_at::date)::text AS text FROM vatproof.mail_tokens ORDER BY issued_at DESC")
    yield* Effect.scoped(
      Effect.andThen(Layer.build(Layer.fresh(Maintenance.layer)), untilSwept(Effect.map(left, ({ length }) => length === 3)))
    )
    assert.deepStrictEqual(yield* left, ["0", "2", "89"])
  })

  it.effect("deletes abandoned uploads, but no upload of an accepted batch", function* () {
    yield* MigratedDatabase.execute(`INSERT INTO vatproof.uploads (upload_id, chunk, account_id, batch_id, items, spooled_at)
      SELECT gen_random_uuid(), no, gen_random_uuid(), CASE no WHEN 0 THEN gen_random_uuid() END, '{}', now() - CASE no WHEN 1 THEN interval '50 minutes' ELSE interval '70 minutes' END
      FROM generate_series(0, 2) no`)
    const kept = texts("SELECT chunk::text AS text FROM vatproof.uploads ORDER BY chunk")
    yield* Effect.scoped(
      Effect.andThen(Layer.build(Layer.fresh(Maintenance.layer)), untilSwept(Effect.map(kept, ({ length }) => length === 2)))
    )
    assert.deepStrictEqual(yield* kept, ["0", "1"])
  })
})
