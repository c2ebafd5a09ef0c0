/** Compares the event store with a simple model in memory. */
import { Arbitrary, Context, Effect, Exit, Layer, Schema } from "effect"
import { VatIdVerified } from "#domain/vat/ValidationEvents.ts"
import type { AppendCommand, Appended } from "#events/log/store/AppendCommand.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import { answered } from "#test/support/SourceAnswer.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { assert, layer } from "#test/support/Test.ts"
import * as Rows from "#test/support/Rows.ts"

const small = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** A command with few possible values, so that commands collide. */
const Step = Schema.Struct({
  stream: Schema.Literals(["a", "b"]),
  expected: Schema.NullOr(small(0, 4)),
  events: small(1, 3),
  charge: Schema.NullOr(Schema.Struct({ meter: Schema.Literals(["x", "y"]), units: small(0, 2), cap: small(0, 5) })),
  latest: Schema.NullOr(Schema.Literals(["p", "q"]))
})
type Step = typeof Step.Type

const eventOf = (number: number) => ({ type: "Tested", schemaVersion: 1, data: { number } })

const commandOf = (run: string, step: Step): AppendCommand => {
  const [first = eventOf(0), ...rest] = Array.from({ length: step.events }, (_, index) => eventOf(index))
  const charge = step.charge === null ? null : { ...step.charge, meter: `${run}-${step.charge.meter}` }
  const last = step.latest === null ? [] : [answered(`${run}-${step.latest}`)]
  return { stream: `${run}-${step.stream}`, expectedVersion: step.expected, events: [first, ...rest, ...last], charge }
}

/** Returns the VAT ID of the answer in a command. */
const latestOf = ({ events }: AppendCommand) => {
  const event = events.at(-1)
  return event?.type === VatIdVerified.type ? VatIdVerified.read(event).vat_id : undefined
}

/** The state of the log that the model expects. */
interface Model {
  head: number
  readonly versions: Map<string, number>
  readonly meters: Map<string, number>
  readonly latest: Map<string, number>
}

type Outcome = Appended | "VersionConflict" | "QuotaReached"

const expect = (model: Model, command: AppendCommand): Outcome => {
  const { charge, events, expectedVersion, stream } = command
  const version = model.versions.get(stream) ?? 0
  if (expectedVersion !== null && expectedVersion !== version) return "VersionConflict"
  const used = charge === null ? 0 : (model.meters.get(charge.meter) ?? 0) + charge.units
  if (charge !== null && charge.units > 0 && used > charge.cap) return "QuotaReached"
  const position = model.head
  model.head += events.length
  model.versions.set(stream, version + events.length)
  if (charge !== null) model.meters.set(charge.meter, used)
  const key = latestOf(command)
  if (key !== undefined) model.latest.set(key, model.head - 1)
  return { position, used, minute: null, isDuplicate: false }
}

const outcomeOf = (command: AppendCommand) =>
  Effect.gen(function* () {
    const events = yield* EventStore
    return yield* events.append(command)
  }).pipe(
    Effect.map((appended): Outcome => appended),
    Effect.catchTag(["VersionConflict", "QuotaReached"], ({ _tag }): Effect.Effect<Outcome> => Effect.succeed(_tag))
  )

const numbers = Effect.fnUntraced(function* (statement: string) {
  return new Map(
    (yield* Rows.all({ key: Schema.String, value: Schema.BigInt }, (sql) => sql.unsafe(statement))).map(({ key, value }) => [
      key,
      Number(value)
    ])
  )
})

const headOf = Effect.map(
  numbers("SELECT 'head' AS key, next_position AS value FROM vatproof.logs"),
  (rows) => rows.get("head") ?? -1
)

/** Asserts the invariants that every log has. */
const assertSound = Effect.gen(function* () {
  const head = yield* headOf
  const facts = yield* numbers(`
    SELECT 'events' AS key, count(*) AS value FROM vatproof.events UNION ALL
    SELECT 'highest', coalesce(max(position), -1) FROM vatproof.events UNION ALL
    SELECT 'lowest', coalesce(min(position), 0) FROM vatproof.events UNION ALL
    SELECT 'streams not dense', count(*) FROM (SELECT stream_id FROM vatproof.events GROUP BY stream_id
      HAVING min(version) <> 1 OR max(version) <> count(*) OR count(DISTINCT version) <> count(*)) x UNION ALL
    SELECT 'versions out of order', count(*) FROM (SELECT version - lag(version) OVER (PARTITION BY stream_id ORDER BY position) AS step
      FROM vatproof.events) x WHERE step <> 1 UNION ALL
    SELECT 'wrong streams', count(*) FROM vatproof.streams s WHERE (version, first_position, last_position) IS DISTINCT FROM
      (SELECT (max(e.version), min(e.position), max(e.position)) FROM vatproof.events e WHERE e.stream_id = s.stream_id) UNION ALL
    SELECT 'wrong meters', count(*) FROM vatproof.meters m WHERE used <>
      (SELECT coalesce(sum(units), 0) FROM vatproof.events e WHERE e.meter_id = m.meter_id) UNION ALL
    SELECT 'ids twice', count(*) - count(DISTINCT event_id) FROM vatproof.events UNION ALL
    SELECT 'recorded backwards', count(*) FROM (SELECT recorded_at - lag(recorded_at) OVER (ORDER BY position) AS step
      FROM vatproof.events) x WHERE step < interval '0'`)
  assert.deepStrictEqual(Object.fromEntries(facts), {
    events: head,
    highest: head - 1,
    lowest: 0,
    "streams not dense": 0,
    "versions out of order": 0,
    "wrong streams": 0,
    "wrong meters": 0,
    "ids twice": 0,
    "recorded backwards": 0
  })
})

layer(MigratedDatabase.layer, { excludeTestServices: true })("the event store", (it) => {
  let runs = 0
  const newRun = () => `run${(runs += 1)}`

  it.effect.prop(
    "returns the same results as a model in memory for any sequence of commands",
    [Arbitrary.array(Arbitrary.schema(Step), { minLength: 1, maxLength: 12 })],
    ([steps]) =>
      Effect.gen(function* () {
        const run = newRun()
        const model: Model = { head: yield* headOf, versions: new Map(), meters: new Map(), latest: new Map() }
        for (const step of steps) {
          const command = commandOf(run, step)
          const expected = expect(model, command)
          assert.deepStrictEqual(yield* outcomeOf(command), expected)
        }
        assert.strictEqual(yield* headOf, model.head)
        const prefix = `WHERE log_id = 0 AND`
        assert.deepStrictEqual(
          yield* numbers(`SELECT stream_id AS key, version AS value FROM vatproof.streams ${prefix} stream_id LIKE '${run}-%'`),
          model.versions
        )
        assert.deepStrictEqual(
          yield* numbers(`SELECT meter_id AS key, used AS value FROM vatproof.meters ${prefix} meter_id LIKE '${run}-%'`),
          model.meters
        )
        assert.deepStrictEqual(
          yield* numbers(
            `SELECT substr(key, 8) AS key, position AS value FROM vatproof.latest ${prefix} key LIKE 'answer-${run}-%'`
          ),
          model.latest
        )
      }),
    { arbitrary: { runs: 60 } }
  )

  it.effect.prop(
    "keeps versions, positions and charges consistent under concurrent commands",
    [Arbitrary.array(Arbitrary.schema(Step), { minLength: 2, maxLength: 30 })],
    ([steps]) =>
      Effect.gen(function* () {
        const run = newRun()
        const before = yield* headOf
        const commands = steps.map((step) => commandOf(run, step))
        const outcomes = yield* Effect.forEach(commands, outcomeOf, { concurrency: "unbounded" })
        const stored = commands.flatMap((command, index) => {
          const outcome = outcomes[index]
          return outcome === undefined || typeof outcome === "string" ? [] : [{ command, outcome }]
        })
        assert.strictEqual(
          (yield* headOf) - before,
          stored.reduce((sum, { command }) => sum + command.events.length, 0)
        )
        const versions = yield* numbers("SELECT position::text AS key, version AS value FROM vatproof.events")
        for (const { command, outcome } of stored) {
          const version = versions.get(String(outcome.position))
          if (command.expectedVersion !== null) assert.strictEqual(version, command.expectedVersion + 1)
          if (command.charge !== null && command.charge.units > 0) assert.isAtMost(outcome.used, command.charge.cap)
        }
        const newest = new Map<string, number>()
        for (const { command, outcome } of stored) {
          const key = latestOf(command)
          if (key === undefined) continue
          const last = outcome.position + command.events.length - 1
          newest.set(key, Math.max(last, newest.get(key) ?? 0))
        }
        const latest = `SELECT substr(key, 8) AS key, position AS value FROM vatproof.latest WHERE log_id = 0 AND key LIKE 'answer-${run}-%'`
        assert.deepStrictEqual(yield* numbers(latest), newest)
      }),
    { arbitrary: { runs: 40 } }
  )

  it.effect("has consistent versions, positions and charges after the preceding tests of this file", () => assertSound)

  it.effect("assigns positions without gaps and keeps meters within their caps, over several replicas", function* () {
    const replica = Effect.map(
      Layer.build(Layer.fresh(EventStore.layer).pipe(Layer.provide(NodeCrypto.layer))),
      Context.get(EventStore)
    )
    const replicas = yield* Effect.all([replica, replica, replica])
    const before = yield* headOf
    const command = (index: number): AppendCommand => ({
      stream: `replicas-${index % 7}`,
      expectedVersion: null,
      events: [eventOf(index)],
      charge: { meter: "replicas", units: 1, cap: 100 }
    })
    const asked = Array.from({ length: 300 }, (_, index) =>
      Effect.exit((replicas[index % 3] ?? replicas[0]).append(command(index)))
    )
    const exits = yield* Effect.all(asked, { concurrency: "unbounded" })
    const positions = exits.flatMap((exit) => (Exit.isSuccess(exit) ? [exit.value.position] : []))
    assert.lengthOf(positions, 100)
    assert.deepStrictEqual(
      positions.toSorted((a, b) => a - b),
      Array.from({ length: 100 }, (_, index) => before + index)
    )
    for (const exit of exits) if (Exit.isFailure(exit)) assert.match(String(exit.cause), /QuotaReached/u)
    yield* assertSound
  })

  it.effect("accepts only one of many concurrent commands with the same expected version of a stream", function* () {
    const command: AppendCommand = { stream: "race", expectedVersion: 0, events: [eventOf(0)], charge: null }
    const outcomes = yield* Effect.forEach(Array.from({ length: 50 }), () => outcomeOf(command), { concurrency: "unbounded" })
    assert.lengthOf(
      outcomes.filter((outcome) => outcome !== "VersionConflict"),
      1
    )
  })

  it.effect("stores all commands of a group commit except those that the database rejects", function* () {
    const command = (stream: string): AppendCommand => ({
      stream,
      expectedVersion: null,
      events: [eventOf(0)],
      charge: { meter: "poison", units: 1, cap: 1_000 }
    })
    // PostgreSQL rejects text with a NUL character.
    const streams = Array.from({ length: 40 }, (_, index) => (index % 10 === 3 ? `poison-\u0000-${index}` : `poison-${index}`))
    const exits = yield* Effect.forEach(streams, (stream) => Effect.exit(outcomeOf(command(stream))), {
      concurrency: "unbounded"
    })
    assert.deepStrictEqual(
      exits.map(Exit.isSuccess),
      streams.map((stream) => !stream.includes("\u0000"))
    )
    assert.strictEqual(
      (yield* numbers("SELECT 'x' AS key, used AS value FROM vatproof.meters WHERE meter_id = 'poison'")).get("x"),
      36
    )
    yield* assertSound
  })

  it.effect("returns events unchanged, by position and by stream", function* () {
    const events = yield* EventStore
    const data = { text: 'Bestätigung € 😀 \u0000 \\ "', nested: [null, true, 1.5, { b: 1, a: 2 }] }
    const command: AppendCommand = {
      stream: "reading",
      expectedVersion: 0,
      events: [{ type: "Tested", schemaVersion: 3, data }, eventOf(1), eventOf(2)],
      charge: { meter: "reading", units: 1, cap: 1 }
    }
    const { position, used } = yield* events.append(command)
    assert.strictEqual(used, 1)
    const byPosition = yield* events.read(position, 10)
    const byStream = yield* events.readStream("reading", 0, 10)
    assert.deepStrictEqual(byPosition, byStream)
    assert.deepStrictEqual(
      byStream.map((event) => [event.position - position, event.version, event.schema_version, event.units, event.meter_id]),
      [
        [0, 1, 3, 1, "reading"],
        [1, 2, 1, 0, "reading"],
        [2, 3, 1, 0, "reading"]
      ]
    )
    assert.strictEqual(byStream[0]?.data, '{"nested":[null,true,1.5,{"a":2,"b":1}],"text":"Bestätigung € 😀 \\u0000 \\\\ \\""}')
    assert.lengthOf(yield* events.readStream("reading", 1, 1), 1)
    assert.lengthOf(yield* events.readStream("reading", 3, 10), 0)
    assert.lengthOf(yield* events.read(yield* headOf, 10), 0)
  })
})
