/** Tests vatproof.append: compares a batch with the same commands one by one, and tests each rejection within a batch. */
import { Arbitrary, Effect, Exit, Metric, Schema } from "effect"
import * as Append from "#events/log/store/Append.ts"
import type { AppendError, Appended } from "#events/log/store/AppendCommand.ts"
import * as StoreMetrics from "#events/log/database/StoreMetrics.ts"
import { outcomeOf, plain, prepare, type Step, texts, undone, written } from "#test/support/Batches.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { assert, layer } from "#test/support/Test.ts"

const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))
const seconds = Schema.Literals(["2026-01-01T00:00:01.000Z", "2026-01-01T00:00:02.000Z", "2026-01-01T00:00:03.000Z"])

/** Commands that collide in streams, meters, rate windows and answers. Caps and limits reject some of them. */
const common = {
  stream: Schema.Literals(["a", "b", "c"]),
  charge: Schema.NullOr(Schema.Struct({ meter: Schema.Literals(["x", "y"]), units: between(0, 1), cap: between(1, 6) })),
  latest: Schema.NullOr(Schema.Literals(["p", "q"])),
  answeredAt: seconds,
  minute: Schema.NullOr(Schema.Struct({ bucket: Schema.Literals(["m", "n"]), limit: between(1, 6) })),
  events: between(1, 3),
  list: Schema.NullOr(Schema.Literals(["receipts", "others"]))
}

/** Commands that are rarely rejected, so that most batches are decided as a whole. */
const Likely = Schema.Struct({
  ...common,
  newest: Schema.NullOr(Schema.Struct({ key: Schema.Literals(["p", "q"]), isRight: Schema.Literal(true) })),
  epoch: Schema.NullOr(Schema.Literal(0)),
  expected: Schema.Null,
  isStored: Schema.Literal(false)
})

/** Commands of every kind. `isStored`: an earlier attempt has stored the command. */
const Any = Schema.Struct({
  ...common,
  newest: Schema.NullOr(Schema.Struct({ key: Schema.Literals(["p", "q"]), isRight: Schema.Boolean })),
  epoch: Schema.NullOr(between(0, 1)),
  expected: Schema.NullOr(between(0, 4)),
  isStored: Schema.Boolean
})

type Known = Step & { readonly isStored: boolean }

const minuteOf = (exit: Exit.Exit<Appended, unknown>) => (Exit.isSuccess(exit) ? exit.value.minute : null)

/** Returns the position of the newest answer for each key, if each step appends one event to an empty log. */
const newestOf = (steps: ReadonlyArray<Step>) => {
  const newest = new Map<string, number>()
  for (const [index, { answeredAt, latest }] of steps.entries()) {
    const former = latest === null ? undefined : newest.get(latest)
    if (latest !== null && (former === undefined || answeredAt >= (steps[former]?.answeredAt ?? ""))) newest.set(latest, index)
  }
  return newest
}

/** Appends the same commands once in one call and once in one call per command, each in a transaction that is rolled back. */
const bothWays = Effect.fnUntraced(function* (before: ReadonlyArray<Step>, steps: ReadonlyArray<Known>) {
  const append = yield* Append.make
  const first = before.map((step) => prepare(step))
  const positions = newestOf(before)
  const batch = steps.map((step, index) => {
    // The database checks a batch against the answers stored before the batch, but a single command also against answers of earlier
    // commands. For equal results, no command relies on an answer that an earlier command replaces.
    const isMoved = steps.slice(0, index).some(({ latest }) => latest !== null && latest === step.newest?.key)
    const known = step.newest !== null && positions.has(step.newest.key) && !isMoved ? step.newest : null
    return prepare({ ...step, newest: known }, positions)
  })
  const stored = batch.filter((_, index) => steps[index]?.isStored === true)
  const isResent = stored.length > 0
  const after = <E, R>(appended: Effect.Effect<ReadonlyArray<Exit.Exit<Appended, AppendError>>, E, R>) =>
    undone(
      Effect.gen(function* () {
        if (first.length > 0) yield* append(first, false)
        if (stored.length > 0) yield* append(stored, false)
        const exits = yield* appended
        return { exits, outcomes: yield* Effect.forEach(exits, outcomeOf), rows: yield* written }
      })
    )
  return {
    whole: yield* after(append(batch, isResent)),
    each: yield* after(
      Effect.map(
        Effect.forEach(batch, (one) => append([one], isResent)),
        (exits) => exits.flat()
      )
    )
  }
})

const compareWays = Effect.fnUntraced(function* (before: ReadonlyArray<Step>, steps: ReadonlyArray<Known>) {
  const { each, whole } = yield* bothWays(
    before.map((step) => ({ ...step, newest: null, events: 1 })),
    steps
  )
  assert.deepStrictEqual(whole.outcomes, each.outcomes)
  assert.deepStrictEqual(whole.rows, each.rows)
  for (const { endsInMs } of whole.exits.flatMap((exit) => minuteOf(exit) ?? [])) {
    assert.isTrue(endsInMs > 0 && endsInMs <= 60_000)
  }
})

const counts = Effect.all({
  whole: Effect.map(Metric.value(StoreMetrics.wholeBatches), ({ count }) => Number(count)),
  decided: Effect.map(Metric.value(StoreMetrics.decidedBatches), ({ count }) => Number(count))
})

const counted = { minute: { bucket: "m", limit: 9 } }

/** Rejected commands: the reason, the command, its error, and the number of calls in its rate window afterwards. */
const refusals: ReadonlyArray<readonly [string, Partial<Step>, object, number]> = [
  ["the identity epoch has changed", { ...counted, epoch: 1 }, { refused: "PreconditionFailed", outdated: "identity" }, 0],
  [
    "a newer answer than the cached one exists",
    { ...counted, newest: { key: "p", isRight: false } },
    { refused: "PreconditionFailed", outdated: "answer" },
    0
  ],
  [
    "there is no answer for the key",
    { ...counted, newest: { key: "q", isRight: true } },
    { refused: "PreconditionFailed", outdated: "answer" },
    0
  ],
  ["the stream has another version", { ...counted, expected: 7 }, { refused: "VersionConflict", stream: "b" }, 0],
  [
    "the rate window is full",
    { minute: { bucket: "m", limit: 0 }, charge: { meter: "x", units: 1, cap: 9 } },
    { refused: "RateLimitReached", used: 0, taken: 1 },
    1
  ],
  [
    "the meter would exceed its cap",
    { ...counted, charge: { meter: "x", units: 1, cap: 0 } },
    { refused: "QuotaReached", meter: "x", used: 0, taken: 1 },
    1
  ],
  [
    "its identity epoch and answer are outdated, and its rate window and meter are full",
    {
      epoch: 1,
      newest: { key: "p", isRight: false },
      minute: { bucket: "m", limit: 0 },
      charge: { meter: "x", units: 1, cap: 0 }
    },
    { refused: "PreconditionFailed", outdated: "identity" },
    0
  ]
]

layer(MigratedDatabase.layer, { excludeTestServices: true })("the append of several commands in one call", (it) => {
  it.effect.prop(
    "has the same result as one call for each command",
    [
      Arbitrary.array(Arbitrary.schema(Any), { maxLength: 6 }),
      Arbitrary.array(Arbitrary.schema(Any), { minLength: 1, maxLength: 12 })
    ],
    ([before, steps]) => compareWays(before, steps),
    { arbitrary: { runs: 80 } }
  )

  it.effect.prop(
    "has the same result as one call for each command, even if a few commands are rejected",
    [
      Arbitrary.array(Arbitrary.schema(Likely), { maxLength: 6 }),
      Arbitrary.array(Arbitrary.schema(Likely), { minLength: 1, maxLength: 12 })
    ],
    ([before, steps]) => compareWays(before, steps),
    { arbitrary: { runs: 80 } }
  )

  it.effect("decides on all commands together if no command is rejected, otherwise on each command separately", () =>
    undone(
      Effect.gen(function* () {
        const append = yield* Append.make
        const before = yield* counts
        yield* append([prepare(plain), prepare({ ...plain, epoch: 0 })], false)
        assert.deepStrictEqual(yield* counts, { ...before, whole: before.whole + 1 })
        yield* append([prepare(plain), prepare({ ...plain, epoch: 1 })], false)
        assert.deepStrictEqual(yield* counts, { whole: before.whole + 1, decided: before.decided + 1 })
      })
    )
  )

  it.effect.each(refusals)("stores all commands except the one that is rejected because %s", ([_, refused, outcome, taken]) =>
    undone(
      Effect.gen(function* () {
        const append = yield* Append.make
        yield* append([prepare({ ...plain, latest: "p" })], false)
        const step: Step = { ...plain, stream: "b", latest: "r", list: "receipts", events: 2, ...refused }
        const charged: Step = { ...plain, charge: { meter: "y", units: 1, cap: 9 }, minute: { bucket: "n", limit: 9 } }
        const batch = [prepare(charged), prepare(step, new Map([["p", 0]])), prepare({ ...charged, stream: "c", events: 2 })]
        const exits = yield* append(batch, false)
        assert.deepStrictEqual(yield* Effect.forEach(exits, outcomeOf), [
          { position: 1, used: 1, taken: 1 },
          outcome,
          { position: 2, used: 2, taken: 2 }
        ])
        const rows = (yield* written).filter((row) => !row.startsWith("event"))
        assert.sameMembers(rows, [
          "head 4",
          'latest answer-p 0 2026-01-01 00:00:00+00 {"answered_at":"2026-01-01T00:00:00.000Z","company_address":null,"company_name":null,"source":"vies","valid":true}',
          "meter y 2",
          ...(taken > 0 ? [`minute m ${taken}`] : []),
          "minute n 2",
          "stream a 2 0 1",
          "stream c 2 2 3"
        ])
      })
    )
  )

  it.effect("leaves the log unchanged if all commands are rejected", () =>
    undone(
      Effect.gen(function* () {
        const append = yield* Append.make
        yield* append([prepare({ ...plain, charge: { meter: "x", units: 1, cap: 1 } })], false)
        const [log, before] = [texts("SELECT logs::text AS text FROM vatproof.logs AS logs"), yield* written]
        const head = yield* log
        const step: Step = { ...plain, latest: "p", list: "receipts" }
        const exits = yield* append(
          [
            prepare({ ...step, epoch: 1 }),
            prepare({ ...step, expected: 0 }),
            prepare({ ...step, charge: { meter: "x", units: 1, cap: 1 } })
          ],
          false
        )
        assert.isTrue(exits.every(Exit.isFailure))
        assert.deepStrictEqual([yield* log, yield* written], [head, before])
      })
    )
  )

  it.effect(
    "accepts a cached answer that was the newest before the call, even if another command of the call stores a newer answer",
    () =>
      undone(
        Effect.gen(function* () {
          const append = yield* Append.make
          const repeats: Step = { ...plain, newest: { key: "p", isRight: true } }
          const answered: Step = { ...plain, latest: "p" }
          yield* append([prepare(answered)], false)
          const first = new Map([["p", 0]])
          const exits = yield* append([prepare(answered), prepare(repeats, first)], false)
          assert.deepStrictEqual(exits.map(Exit.isSuccess), [true, true])
          assert.isTrue((yield* append([prepare(repeats, first)], false)).every(Exit.isFailure))
          assert.isTrue((yield* append([prepare(repeats, new Map([["p", 1]]))], false)).every(Exit.isSuccess))
        })
      )
  )

  it.effect("stores retried commands once, even if their preconditions no longer hold", () =>
    undone(
      Effect.gen(function* () {
        const append = yield* Append.make
        const strict: Step = {
          ...plain,
          expected: 0,
          events: 2,
          charge: { meter: "x", units: 1, cap: 1 },
          minute: { bucket: "m", limit: 1 },
          latest: "p",
          list: "receipts"
        }
        const batch = [prepare(strict), prepare({ ...plain, stream: "b" })]
        assert.isTrue((yield* append(batch, false)).every(Exit.isSuccess))
        const before = yield* written
        const again = yield* append([prepare({ ...plain, stream: "c" }), ...batch], true)
        assert.deepStrictEqual(yield* Effect.forEach(again, outcomeOf), [
          { position: 3, used: 0, taken: null },
          { position: 0, used: 1, taken: null },
          { position: 2, used: 0, taken: null }
        ])
        const added = (yield* written).filter((row) => !before.includes(row) && !row.startsWith("event"))
        assert.deepStrictEqual(added, ["head 4", "stream c 1 3 3"])
      })
    )
  )

  it.effect(
    "recognises a retried command as a duplicate, even if the command's events are in the previous partition of the log",
    function* () {
      const last = 2 ** 26 - 1
      yield* MigratedDatabase.execute(`UPDATE vatproof.logs SET next_position = ${last}`)
      const outcomes = yield* undone(
        Effect.gen(function* () {
          const append = yield* Append.make
          const [known, fresh] = [prepare(plain), prepare({ ...plain, stream: "b" })]
          yield* append([known], false)
          return yield* Effect.forEach(yield* append([fresh, known], true), outcomeOf)
        })
      )
      yield* MigratedDatabase.execute("UPDATE vatproof.logs SET next_position = 0")
      assert.deepStrictEqual(outcomes, [
        { position: last + 1, used: 0, taken: null },
        { position: last, used: 0, taken: null }
      ])
    }
  )
})
