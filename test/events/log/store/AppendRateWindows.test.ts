/** Tests how vatproof.append counts calls in rate windows, which enforce the limit per minute. */
import { Deferred, Effect, Exit, Fiber, Schedule, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import * as Append from "#events/log/store/Append.ts"
import * as CallCounter from "#events/callers/CallCounter.ts"
import { plain, prepare, type Step, texts, undone } from "#test/support/Batches.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { assert, layer } from "#test/support/Test.ts"

/** Returns two batches: one that is stored as a whole, and one that is decided command by command. */
const batchesFor = (bucket: string, limit = 9) => {
  const step: Step = { ...plain, minute: { bucket, limit } }
  return {
    whole: [prepare(step), prepare(step)],
    decided: [prepare(step), prepare({ ...step, epoch: 1 }), prepare(step)]
  }
}

const clear = MigratedDatabase.execute("DELETE FROM vatproof.rate_windows")

const minute = "minute/"

/** Counts one call in each of these rate windows. */
const countCalls = (minutes: ReadonlyArray<string>) => {
  const names = `'{${minutes.join(",")}}'`
  const taken = `vatproof.count_calls(0::smallint, '{}', ${names}, ${names}, array_fill(1::bigint, ARRAY[${minutes.length}]))`
  return texts(`SELECT unnest(taken)::text AS text FROM ${taken}`)
}

/** Counts calls with vatproof.count_calls, in a transaction of its own. */
const countCallsOf = Effect.fnUntraced(function* (streams: ReadonlyArray<string>) {
  const count = yield* CallCounter.make
  return yield* Effect.forEach(
    streams,
    (stream) => count({ _tag: "Anonymous", stream, meter: stream, limit: 9, perMinute: 9, addressHash: "a" }),
    { concurrency: "unbounded" }
  )
})

layer(MigratedDatabase.layer, { excludeTestServices: true })("the append of several metered calls", (it) => {
  it.effect.each([
    ["restarts rate windows that have ended", "0 seconds", "-1 second", [1, 2], 60_000],
    ["continues rate windows that have not ended", "0 seconds", "30 seconds", [8, 9], 30_000],
    ["restarts rate windows that have ended, even if the clock was set back", "10 minutes", "-1 second", [1, 2], 60_000],
    ["continues rate windows that have not ended, even if the clock was set back", "10 minutes", "30 seconds", [8, 9], 30_000],
    ["restarts rate windows that would end later than a new window", "10 minutes", "10 minutes", [1, 2], 60_000]
  ] as const)("%s", function* ([_, ahead, ends, taken, endsInMs]) {
    const append = yield* Append.make
    yield* MigratedDatabase.execute(`UPDATE vatproof.logs SET last_recorded_at = clock_timestamp() + interval '${ahead}'`)
    yield* MigratedDatabase.execute(`INSERT INTO vatproof.rate_windows VALUES ('known', 7, now() + interval '${ends}')`)
    const { decided, whole } = batchesFor("known")
    for (const batch of [whole, decided]) {
      const exits = yield* undone(append(batch, false))
      const minutes = exits.flatMap((exit) => (Exit.isSuccess(exit) && exit.value.minute !== null ? [exit.value.minute] : []))
      assert.deepStrictEqual(
        minutes.map((minute) => minute.taken),
        [...taken]
      )
      for (const minute of minutes) {
        assert.isAtMost(minute.endsInMs, endsInMs)
        assert.isAbove(minute.endsInMs, endsInMs - 20_000)
      }
    }
    yield* clear
    yield* MigratedDatabase.execute("UPDATE vatproof.logs SET last_recorded_at = '-infinity'")
  })

  it.effect("counts each call in its rate window, including rejected calls", () =>
    undone(
      Effect.gen(function* () {
        const append = yield* Append.make
        const { whole } = batchesFor("small", 1)
        assert.deepStrictEqual((yield* append(whole, false)).map(Exit.isSuccess), [true, false])
        assert.deepStrictEqual((yield* append(batchesFor("small", 3).whole, false)).map(Exit.isSuccess), [true, false])
        assert.deepStrictEqual(yield* countCalls(["small"]), ["5"])
      })
    )
  )

  it.effect.each(["vatproof.append", "vatproof.count_calls"])(
    "locks rate windows in the order of their names (function %s)",
    function* (lockedBy) {
      yield* MigratedDatabase.execute(
        `INSERT INTO vatproof.rate_windows SELECT '${minute}' || b, 0, now() + interval '1 minute' FROM unnest('{a,m,z}'::text[]) AS b`
      )
      const append = yield* Append.make
      const [isLocked, isWaiting] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const holder = yield* Effect.forkScoped(
        MigratedDatabase.asAdministrator(
          Effect.flatMap(SqlClient.SqlClient, (sql) =>
            Effect.gen(function* () {
              yield* sql`SELECT FROM vatproof.rate_windows WHERE bucket = ${`${minute}a`} FOR UPDATE`
              yield* Deferred.succeed(isLocked, undefined)
              yield* Deferred.await(isWaiting)
              // A call that waits for the lock of the first window has locked no other window.
              yield* sql`SELECT FROM vatproof.rate_windows WHERE bucket <> ${`${minute}a`} FOR UPDATE NOWAIT`
            }).pipe(sql.withTransaction)
          )
        )
      )
      yield* Deferred.await(isLocked)
      const streams = ["z", "a", "m"]
      const batch = streams.map((stream) => prepare({ ...plain, minute: { bucket: `${minute}${stream}`, limit: 9 } }))
      const counted: Effect.Effect<ReadonlyArray<unknown>, unknown, SqlClient.SqlClient | Scope.Scope> = lockedBy ===
      "vatproof.append"
        ? undone(append(batch, false))
        : countCallsOf(streams)
      const counting = yield* Effect.forkScoped(counted)
      const waiting = texts(
        "SELECT 'x' AS text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
      )
      yield* MigratedDatabase.asAdministrator(
        Effect.repeat(waiting, { until: ({ length }) => length > 0, schedule: Schedule.spaced("10 millis") })
      )
      yield* Deferred.succeed(isWaiting, undefined)
      yield* Fiber.join(holder)
      assert.lengthOf(yield* Fiber.join(counting), 3)
      yield* clear
    }
  )

  it.effect("reads no rate windows of other callers", function* () {
    const others = "SELECT 'other' || n, 1, now() + interval '1 minute' FROM generate_series(1, 5000) AS n"
    yield* MigratedDatabase.execute(`INSERT INTO vatproof.rate_windows ${others}`)
    yield* MigratedDatabase.execute("ANALYZE vatproof.rate_windows")
    const append = yield* Append.make
    const reads = Effect.map(
      texts("SELECT (idx_tup_fetch + seq_tup_read)::text AS text FROM pg_stat_xact_user_tables WHERE relname = 'rate_windows'"),
      ([count]) => Number(count ?? 0)
    )
    const { decided, whole } = batchesFor("mine")
    const ways = [append(whole, false), append(decided, false), countCalls(["mine", "other7"])]
    for (const way of ways) {
      const [before, after] = yield* undone(
        Effect.gen(function* () {
          const first = yield* reads
          yield* way
          return [first, yield* reads] as const
        })
      )
      assert.isBelow(after - before, 20)
    }
    yield* clear
  })
})
