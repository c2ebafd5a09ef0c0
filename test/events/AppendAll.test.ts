/** vatproof.append_all against vatproof.append: it stores the same, or nothing where that would refuse a command. */
import { assert, layer } from "@effect/vitest"
import { Arbitrary, Effect, Exit, Schema } from "effect"
import * as Append from "#events/Append.ts"
import * as AppendAll from "#events/AppendAll.ts"
import { plain, prepare, type Step, texts, undone } from "#test/support/Batches.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"

const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** A command in few letters, so that commands meet in streams, meters, minutes and answers, and fill meters and minutes. */
const Likely = Schema.Struct({
  stream: Schema.Literals(["a", "b", "c"]),
  charge: Schema.NullOr(Schema.Struct({ meter: Schema.Literals(["x", "y"]), units: between(0, 1), cap: between(1, 6) })),
  latestOf: Schema.NullOr(Schema.Literals(["p", "q"])),
  answeredAt: Schema.Literals(["2026-01-01T00:00:01.000Z", "2026-01-01T00:00:02.000Z", "2026-01-01T00:00:03.000Z"]),
  newest: Schema.NullOr(Schema.Struct({ key: Schema.Literals(["p", "q"]), isRight: Schema.Literal(true) })),
  minute: Schema.NullOr(Schema.Struct({ bucket: Schema.Literals(["m", "n"]), limit: between(1, 6) })),
  epoch: Schema.NullOr(Schema.Literal(0))
})

/** All that an append writes, but for the times that are those of the call. */
const written = texts(`
  SELECT concat_ws(' ', 'event', position, stream_id, version, event_id, type, schema_version, occurred_at, correlation_id, causation_id,
    trace_id, meter_id, units, data, metadata) AS text FROM vatproof.events
  UNION ALL SELECT concat_ws(' ', 'stream', stream_id, version, first_position, last_position) FROM vatproof.streams
  UNION ALL SELECT concat_ws(' ', 'meter', meter_id, used) FROM vatproof.meters
  UNION ALL SELECT concat_ws(' ', 'latest', key, position, answered_at) FROM vatproof.latest
  UNION ALL SELECT concat_ws(' ', 'minute', bucket, taken) FROM vatproof.rate_windows
  UNION ALL SELECT concat_ws(' ', 'head', next_position) FROM vatproof.logs ORDER BY 1`)

const minuteOf = (exit: Exit.Exit<Append.Appended, unknown>) => (Exit.isSuccess(exit) ? exit.value.minute : null)

/** The outcome without the milliseconds that pass between two calls. */
const plainly = (exit: Exit.Exit<Append.Appended, unknown>) => {
  const minute = minuteOf(exit)
  return Exit.isSuccess(exit) ? { ...exit.value, minute: minute?.taken ?? null } : "refused"
}

/** Where the newest answers are after some commands: those that were given last, and of several the one that was stored last. */
const newestOf = (steps: ReadonlyArray<Step>) => {
  const newest = new Map<string, number>()
  for (const [index, { answeredAt = "", latestOf }] of steps.entries()) {
    const former = latestOf === null ? undefined : newest.get(latestOf)
    if (latestOf !== null && (former === undefined || answeredAt >= (steps[former]?.answeredAt ?? "")))
      newest.set(latestOf, index)
  }
  return newest
}

/** Each way in a transaction of its own that leaves nothing behind, after the same commands. */
const bothWays = Effect.fnUntraced(function* (before: ReadonlyArray<Step>, steps: ReadonlyArray<Step>) {
  const append = yield* Append.make
  const first = before.map((step) => prepare(step))
  const positions = newestOf(before)
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
  ["a command has two events", [{ events: 2 }]],
  ["a command expects a version", [{ expected: 1 }]],
  ["a command stands in a list", [{ list: "receipts" }]]
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
        const [known, fresh] = [prepare(plain), prepare({ ...plain, stream: "b" })]
        yield* append([known])
        assert.isNull(yield* appendAll([fresh, known]))
        assert.deepStrictEqual(yield* texts("SELECT count(*)::text AS text FROM vatproof.events"), ["1"])
      })
    )
  )

  it.effect.each([
    ["begins a minute anew that has ended", "0 seconds", "-1 second", [1, 2], 60_000],
    ["goes on with a minute that has not ended", "0 seconds", "30 seconds", [8, 9], 30_000],
    ["begins a minute anew that has ended by a clock that was set back", "10 minutes", "-1 second", [1, 2], 60_000],
    ["goes on with a minute that has not ended by a clock that was set back", "10 minutes", "30 seconds", [8, 9], 30_000],
    ["begins a minute anew that would end when the clock is where it was", "10 minutes", "10 minutes", [1, 2], 60_000]
  ] as const)("%s", ([_, ahead, ends, taken, endsInMs]) =>
    Effect.gen(function* () {
      const step: Step = { ...plain, minute: { bucket: "known", limit: 9 } }
      yield* MigratedDatabase.execute(`UPDATE vatproof.logs SET last_recorded_at = clock_timestamp() + interval '${ahead}'`)
      yield* MigratedDatabase.execute(
        `INSERT INTO vatproof.rate_windows VALUES ('known', 7, now() + interval '${ends}')
         ON CONFLICT (bucket) DO UPDATE SET taken = excluded.taken, ends_at = excluded.ends_at`
      )
      const { each, whole } = yield* bothWays([], [step, step])
      for (const exits of [whole.exits ?? [], each.exits]) {
        const minutes = exits.map(minuteOf)
        assert.deepStrictEqual(
          minutes.map((minute) => minute?.taken),
          [...taken]
        )
        for (const minute of minutes) {
          assert.isAtMost(minute?.endsInMs ?? Infinity, endsInMs)
          assert.isAbove(minute?.endsInMs ?? 0, endsInMs - 20_000)
        }
      }
      yield* MigratedDatabase.execute("DELETE FROM vatproof.rate_windows")
      yield* MigratedDatabase.execute("UPDATE vatproof.logs SET last_recorded_at = '-infinity'")
    })
  )
})
