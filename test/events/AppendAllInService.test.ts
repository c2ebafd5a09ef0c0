/** How the service uses vatproof.append_all: beside others, again and again, and where it is of no use. */
import { assert, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Metric, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import * as Append from "#events/Append.ts"
import * as AppendAll from "#events/AppendAll.ts"
import { EventStore } from "#events/EventStore.ts"
import * as StoreMetrics from "#events/StoreMetrics.ts"
import * as Randomness from "#infra/Randomness.ts"
import { plain, prepare, texts, undone } from "#test/support/Batches.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"

/** Batches that were stored as a whole, and others. */
const batchesSoFar = Effect.zipWith(
  Metric.value(StoreMetrics.wholeBatches),
  Metric.value(StoreMetrics.decidedBatches),
  (whole, decided) => ({ whole: Number(whole.count), decided: Number(decided.count) })
)

layer(MigratedDatabase.layer, { excludeTestServices: true })("a batch as a whole", (it) => {
  it.effect("locks its minutes in the order of their names, as all do who lock several", () =>
    Effect.gen(function* () {
      yield* MigratedDatabase.execute(
        "INSERT INTO vatproof.rate_windows SELECT b, 0, now() + interval '1 minute' FROM unnest('{a,m,z}'::text[]) AS b"
      )
      const appendAll = yield* AppendAll.make
      const [isLocked, isWaiting] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const holder = yield* Effect.forkScoped(
        MigratedDatabase.asAdministrator(
          Effect.flatMap(SqlClient.SqlClient, (sql) =>
            Effect.gen(function* () {
              yield* sql`SELECT FROM vatproof.rate_windows WHERE bucket = 'a' FOR UPDATE`
              yield* Deferred.succeed(isLocked, undefined)
              yield* Deferred.await(isWaiting)
              // Nobody has the others yet.
              yield* sql`SELECT FROM vatproof.rate_windows WHERE bucket IN ('m', 'z') FOR UPDATE NOWAIT`
            }).pipe(sql.withTransaction)
          )
        )
      )
      yield* Deferred.await(isLocked)
      const batch = ["z", "a", "m"].map((bucket) => prepare({ ...plain, minute: { bucket, limit: 9 } }))
      const appending = yield* Effect.forkScoped(undone(appendAll(batch)))
      const waiting = texts(
        "SELECT 'x' AS text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
      )
      yield* MigratedDatabase.asAdministrator(
        Effect.repeat(waiting, { until: ({ length }) => length > 0, schedule: Schedule.spaced("10 millis") })
      )
      yield* Deferred.succeed(isWaiting, undefined)
      yield* Fiber.join(holder)
      assert.lengthOf((yield* Fiber.join(appending)) ?? [], 3)
      yield* MigratedDatabase.execute("DELETE FROM vatproof.rate_windows")
    })
  )

  it.effect(
    "is left to vatproof.append for a while once one was refused, and for longer when the next one is refused as well",
    () =>
      undone(
        Effect.gen(function* () {
          const appendAll = yield* AppendAll.make
          const refused = Effect.tap(appendAll([prepare({ ...plain, epoch: 1 })]), (exits) =>
            Effect.sync(() => assert.isNull(exits))
          )
          const stored = Effect.suspend(() => Effect.map(appendAll([prepare(plain)]), (exits) => exits !== null))
          /** How many are left out until one is stored again. */
          const leftOut = Effect.gen(function* () {
            let count = 0
            while (!(yield* stored)) count += 1
            return count
          })
          for (const [inARow, afterwards] of [
            [1, 1],
            [3, 3],
            [7, 7],
            [15, 7],
            [1, 1]
          ] as const) {
            for (let call = 0; call < inARow; call += 1) yield* refused
            assert.strictEqual(yield* leftOut, afterwards)
          }
        })
      )
  )

  it.effect("costs no more when many others have calls in their minutes", () =>
    Effect.gen(function* () {
      const others = "SELECT 'other' || n, 1, now() + interval '1 minute' FROM generate_series(1, 5000) AS n"
      yield* MigratedDatabase.execute(`INSERT INTO vatproof.rate_windows ${others}`)
      yield* MigratedDatabase.execute("ANALYZE vatproof.rate_windows")
      const batch = [prepare({ ...plain, minute: { bucket: "mine", limit: 9 } })]
      const reads = Effect.map(
        texts("SELECT (idx_tup_fetch + seq_tup_read)::text AS text FROM pg_stat_xact_user_tables WHERE relname = 'rate_windows'"),
        ([count]) => Number(count ?? 0)
      )
      const append = yield* Append.make
      const appendAll = yield* AppendAll.make
      for (const way of [append(batch), appendAll(batch)]) {
        const [before, , after] = yield* undone(Effect.all([reads, way, reads]))
        assert.isBelow(after - before, 20)
      }
      yield* MigratedDatabase.execute("DELETE FROM vatproof.rate_windows")
    })
  )

  it.effect.each([
    [2 ** 26 - 2, true],
    [2 ** 26 - 1, false],
    [2 ** 26 + 999_998, false],
    [2 ** 26 + 999_999, true]
  ] as const)("is stored at place %i: %s, for an index knows nothing of the partition before its own", ([head, isStored]) =>
    Effect.gen(function* () {
      yield* MigratedDatabase.execute(`UPDATE vatproof.logs SET next_position = ${head}`)
      const appendAll = yield* AppendAll.make
      const exits = yield* undone(appendAll([prepare(plain)]))
      assert.strictEqual(exits !== null, isStored)
      yield* MigratedDatabase.execute("UPDATE vatproof.logs SET next_position = 0")
    })
  )

  it.effect("is not sent as a whole again when nobody knows what came of it", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const lost = new SqlError({
        reason: new ConnectionError({ cause: new Error("reset"), message: "reset", operation: "query" })
      })
      let wholes = 0
      const deaf = new Proxy(sql, {
        get: (target, key) =>
          key === "unsafe"
            ? (text: string, values: ReadonlyArray<unknown>) => {
                if (!text.includes("append_all")) return target.unsafe(text, values)
                wholes += 1
                return Effect.andThen(target.unsafe(text, values), Effect.fail(lost))
              }
            : Reflect.get(target, key)
      })
      const store = yield* Effect.map(
        Layer.build(
          Layer.fresh(EventStore.layer).pipe(Layer.provide([Randomness.layer, Layer.succeed(SqlClient.SqlClient, deaf)]))
        ),
        Context.get(EventStore)
      )
      const event = { type: "Tested", schemaVersion: 1, data: {} }
      const command: Append.AppendCommand = {
        stream: "lost",
        expectedVersion: null,
        events: [event],
        charge: null,
        latestOf: null
      }
      assert.strictEqual((yield* store.append(command)).version, 1)
      assert.deepStrictEqual(yield* texts("SELECT count(*)::text AS text FROM vatproof.events"), ["1"])
      assert.strictEqual(wholes, 1)
    })
  )

  it.effect("goes command by command where the service may not call the function", () =>
    Effect.gen(function* () {
      yield* MigratedDatabase.execute("REVOKE EXECUTE ON FUNCTION vatproof.append_all FROM vatproof_service")
      const { append } = yield* EventStore
      const before = yield* batchesSoFar
      const event = { type: "Tested", schemaVersion: 1, data: {} }
      const commands = Array.from({ length: 20 }, (_, index): Append.AppendCommand => ({
        stream: `kept-${index}`,
        expectedVersion: null,
        events: [event],
        charge: null,
        latestOf: null
      }))
      const appended = yield* Effect.forEach(commands, append, { concurrency: "unbounded" })
      assert.strictEqual(new Set(appended.map(({ position }) => position)).size, 20)
      // In batches all the same: what is stored together has one time.
      const times = yield* texts("SELECT DISTINCT recorded_at::text AS text FROM vatproof.events WHERE stream_id LIKE 'kept-%'")
      assert.isBelow(times.length, 4)
      assert.deepStrictEqual(yield* batchesSoFar, { ...before, decided: before.decided + times.length })
      yield* MigratedDatabase.execute("GRANT EXECUTE ON FUNCTION vatproof.append_all TO vatproof_service")
    })
  )
})
