/** vatproof.append_all against vatproof.append: it stores the same, or nothing where that would refuse a command. */
import { assert, layer } from "@effect/vitest"
import { Arbitrary, Context, Data, Deferred, Effect, Exit, Layer, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient, SqlSchema } from "effect/sql"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import * as Append from "#events/Append.ts"
import * as AppendAll from "#events/AppendAll.ts"
import { EventStore } from "#events/EventStore.ts"
import * as Randomness from "#infra/Randomness.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"

const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** A command in few letters, so that commands meet in streams, meters, minutes and answers, and fill meters and minutes. */
const Likely = Schema.Struct({
  stream: Schema.Literals(["a", "b", "c"]),
  charge: Schema.NullOr(Schema.Struct({ meter: Schema.Literals(["x", "y"]), units: between(0, 1), cap: between(1, 6) })),
  latestOf: Schema.NullOr(Schema.Literals(["p", "q"])),
  newest: Schema.NullOr(Schema.Struct({ key: Schema.Literals(["p", "q"]), isRight: Schema.Literal(true) })),
  minute: Schema.NullOr(Schema.Struct({ bucket: Schema.Literals(["m", "n"]), limit: between(1, 6) })),
  epoch: Schema.NullOr(Schema.Literal(0))
})

/** With any names, and what may be wrong with it. */
interface Step {
  readonly stream: string
  readonly charge: { readonly meter: string; readonly units: number; readonly cap: number } | null
  readonly latestOf: string | null
  readonly newest: { readonly key: string; readonly isRight: boolean } | null
  readonly minute: { readonly bucket: string; readonly limit: number } | null
  readonly epoch: number | null
  readonly events?: number
}

const plain: Step = { stream: "a", charge: null, latestOf: null, newest: null, minute: null, epoch: null }

const orNull = (value: number | null | undefined) => (value === null || value === undefined ? null : BigInt(value))

/** `positions` are those of the newest answers. */
const prepare = (step: Step, positions: ReadonlyMap<string, number>): Append.Prepared => {
  const { charge, epoch, events = 1, latestOf, minute, newest, stream } = step
  const position = newest === null ? 0 : (positions.get(newest.key) ?? 0) + (newest.isRight ? 0 : 1)
  const presumed = { epoch, newest: newest === null ? null : { key: newest.key, position }, minute }
  const event = { type: "Tested", schemaVersion: 1, data: {} }
  const command: Append.PresumingCommand = { stream, expectedVersion: null, events: [event], charge, latestOf, presumed }
  const rowOf = (index: number): Append.Cells => ({
    stream,
    expected: null,
    eventId: SecureRandom.uuidV7Unsafe(),
    type: event.type,
    schemaVersion: 1,
    occurredAt: 1_800_000_000_000,
    correlationId: SecureRandom.uuidV7Unsafe(),
    causationId: null,
    traceId: null,
    data: "{}",
    metadata: "{}",
    meter: charge?.meter ?? null,
    units: index === 0 ? (charge?.units ?? 0) : 0,
    cap: orNull(charge?.cap),
    latest: latestOf,
    lists: null,
    epoch: orNull(epoch),
    answerKey: newest?.key ?? null,
    answerPosition: newest === null ? null : BigInt(position),
    bucket: minute?.bucket ?? null,
    bucketLimit: minute?.limit ?? null
  })
  return { command, rows: Array.from({ length: events }, (_, index) => rowOf(index)) }
}

const texts = Effect.fnUntraced(function* (statement: string) {
  const sql = yield* SqlClient.SqlClient
  const find = SqlSchema.findAll({
    Request: Schema.Void,
    Result: Schema.Struct({ text: Schema.String }),
    execute: () => sql.unsafe(statement).unprepared
  })
  return (yield* find(undefined)).map(({ text }) => text)
})

/** All that an append writes, but for ids, times and the log's head, which a batch that stores nothing leaves alone. */
const written = texts(`
  SELECT concat_ws(' ', 'event', position, stream_id, version, event_id, meter_id, units) AS text FROM vatproof.events
  UNION ALL SELECT concat_ws(' ', 'stream', stream_id, version, first_position, last_position) FROM vatproof.streams
  UNION ALL SELECT concat_ws(' ', 'meter', meter_id, used) FROM vatproof.meters
  UNION ALL SELECT concat_ws(' ', 'latest', key, position) FROM vatproof.latest
  UNION ALL SELECT concat_ws(' ', 'minute', bucket, taken) FROM vatproof.rate_windows
  UNION ALL SELECT concat_ws(' ', 'head', next_position) FROM vatproof.logs ORDER BY 1`)

class RolledBack extends Data.TaggedError("RolledBack") {}

/** What the effect comes to, and nothing that it wrote. */
const undone = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  const sql = yield* SqlClient.SqlClient
  const kept = yield* Deferred.make<A, E>()
  yield* Effect.exit(effect).pipe(
    Effect.tap((exit) => Deferred.done(kept, exit)),
    Effect.andThen(new RolledBack()),
    sql.withTransaction,
    Effect.catchTag("RolledBack", () => Effect.void)
  )
  return yield* Deferred.await(kept)
})

const minuteOf = (exit: Exit.Exit<Append.Appended, unknown>) => (Exit.isSuccess(exit) ? exit.value.minute : null)

/** The outcome without the milliseconds that pass between two calls. */
const plainly = (exit: Exit.Exit<Append.Appended, unknown>) => {
  const minute = minuteOf(exit)
  return Exit.isSuccess(exit) ? { ...exit.value, minute: minute?.taken ?? null } : "refused"
}

/** Each way in a transaction of its own that leaves nothing behind, after the same commands. */
const bothWays = Effect.fnUntraced(function* (before: ReadonlyArray<Step>, steps: ReadonlyArray<Step>) {
  const append = yield* Append.make
  const first = before.map((step) => prepare(step, new Map()))
  const positions = new Map(before.flatMap(({ latestOf }, index) => (latestOf === null ? [] : [[latestOf, index] as const])))
  const batch = steps.map((step) =>
    prepare({ ...step, newest: step.newest !== null && positions.has(step.newest.key) ? step.newest : null }, positions)
  )
  const head = Number((yield* texts("SELECT next_position::text AS text FROM vatproof.logs"))[0])
  assert.strictEqual(head, 0)
  return yield* Effect.all({
    whole: undone(
      Effect.gen(function* () {
        if (first.length > 0) yield* append(first)
        const untouched = yield* written
        const exits = yield* Effect.flatten(Effect.map(AppendAll.make, (appendAll) => appendAll(batch)))
        return { untouched, exits, rows: yield* written }
      })
    ),
    each: undone(
      Effect.gen(function* () {
        if (first.length > 0) yield* append(first)
        return { exits: yield* append(batch), rows: yield* written }
      })
    )
  })
})

const refusals: ReadonlyArray<readonly [string, ReadonlyArray<Partial<Step>>]> = [
  ["the epoch has moved", [{ epoch: 0 }, { epoch: 1 }]],
  ["only the epoch of others stands", [{ epoch: 1 }]],
  ["another answer is the newest", [{ newest: { key: "p", isRight: false } }]],
  ["the minute gets too full", Array.from({ length: 4 }, () => ({ minute: { bucket: "m", limit: 3 } }))],
  ["the meter would pass its cap", Array.from({ length: 4 }, () => ({ charge: { meter: "x", units: 1, cap: 3 } }))],
  ["a command has two events", [{ events: 2 }]]
]

layer(MigratedDatabase.layer, { excludeTestServices: true })("a batch as a whole", (it) => {
  it.effect.prop(
    "is stored as its commands would be one by one, or not at all if one of them is refused",
    [
      Arbitrary.array(Arbitrary.schema(Likely), { maxLength: 6 }),
      Arbitrary.array(Arbitrary.schema(Likely), { minLength: 1, maxLength: 12 })
    ],
    ([before, steps]) =>
      Effect.gen(function* () {
        const known = before.map((step): Step => ({ ...step, newest: null }))
        const { each, whole } = yield* bothWays(known, steps)
        if (whole.exits === null) {
          assert.deepStrictEqual(whole.rows, whole.untouched)
          assert.isTrue(each.exits.some(Exit.isFailure))
        } else {
          assert.deepStrictEqual(whole.exits.map(plainly), each.exits.map(plainly))
          assert.deepStrictEqual(whole.rows, each.rows)
          for (const { endsInMs } of whole.exits.flatMap((exit) => minuteOf(exit) ?? [])) {
            assert.isTrue(endsInMs > 0 && endsInMs <= 60_000)
          }
        }
      }),
    { arbitrary: { runs: 150 } }
  )

  it.effect.each(refusals)("is not stored when %s", ([_, steps]) =>
    Effect.gen(function* () {
      const answered: Step = { ...plain, latestOf: "p" }
      const { whole } = yield* bothWays([answered], [plain, ...steps.map((step) => ({ ...plain, ...step }))])
      assert.isNull(whole.exits)
      assert.deepStrictEqual(whole.rows, whole.untouched)
    })
  )

  it.effect("is not stored when one of its events is there already", () =>
    undone(
      Effect.gen(function* () {
        const append = yield* Append.make
        const appendAll = yield* AppendAll.make
        const [known, fresh] = [prepare(plain, new Map()), prepare({ ...plain, stream: "b" }, new Map())]
        yield* append([known])
        assert.isNull(yield* appendAll([fresh, known]))
        assert.deepStrictEqual(yield* texts("SELECT count(*)::text AS text FROM vatproof.events"), ["1"])
      })
    )
  )

  it.effect("begins a minute anew that has ended", () =>
    Effect.gen(function* () {
      const step: Step = { ...plain, minute: { bucket: "ended", limit: 2 } }
      yield* MigratedDatabase.execute(
        "INSERT INTO vatproof.rate_windows VALUES ('ended', 2, now() - interval '1 second') ON CONFLICT (bucket) DO UPDATE SET taken = 2"
      )
      const { each, whole } = yield* bothWays([], [step, step])
      assert.deepStrictEqual(whole.exits?.map(plainly), each.exits.map(plainly))
      assert.deepStrictEqual(
        whole.exits?.map((exit) => minuteOf(exit)?.taken),
        [1, 2]
      )
    })
  )

  it.effect("is left to vatproof.append for a while once one was refused", () =>
    undone(
      Effect.gen(function* () {
        const appendAll = yield* AppendAll.make
        assert.isNull(yield* appendAll([prepare({ ...plain, epoch: 1 }, new Map())]))
        const tries = yield* Effect.forEach(Array.from({ length: 8 }), () => appendAll([prepare(plain, new Map())]))
        assert.deepStrictEqual(
          tries.map((exits) => exits !== null),
          [false, false, false, false, false, false, false, true]
        )
      })
    )
  )

  it.effect("costs no more when many others have calls in their minutes", () =>
    Effect.gen(function* () {
      const others = "SELECT 'other' || n, 1, now() + interval '1 minute' FROM generate_series(1, 5000) AS n"
      yield* MigratedDatabase.execute(`INSERT INTO vatproof.rate_windows ${others}`)
      yield* MigratedDatabase.execute("ANALYZE vatproof.rate_windows")
      const batch = [prepare({ ...plain, minute: { bucket: "mine", limit: 9 } }, new Map())]
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
    })
  )

  it.effect("is not sent as a whole again when nobody knows what came of it", () =>
    Effect.gen(function* () {
      // The last place of a partition: the unique index of the next one would not find the event.
      yield* MigratedDatabase.execute(`UPDATE vatproof.logs SET next_position = ${2 ** 26 - 1}`)
      const sql = yield* SqlClient.SqlClient
      const lost = new SqlError({
        reason: new ConnectionError({ cause: new Error("reset"), message: "reset", operation: "query" })
      })
      const deaf = new Proxy(sql, {
        get: (target, key) =>
          key === "unsafe"
            ? (text: string, values: ReadonlyArray<unknown>) =>
                text.includes("append_all")
                  ? Effect.andThen(target.unsafe(text, values), Effect.fail(lost))
                  : target.unsafe(text, values)
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
        stream: "edge",
        expectedVersion: null,
        events: [event],
        charge: null,
        latestOf: null
      }
      const { position, version } = yield* store.append(command)
      assert.deepStrictEqual([position, version], [2 ** 26 - 1, 1])
      assert.deepStrictEqual(yield* texts("SELECT count(*)::text AS text FROM vatproof.events"), ["1"])
    })
  )
})
