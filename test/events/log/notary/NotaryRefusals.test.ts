import { Effect, Layer } from "effect"
import * as EventsSignedLog from "#events/log/notary/NotaryRefusals.ts"
import { TreeStore } from "#events/log/notary/TreeStore.ts"
import { keysOf, signer } from "#test/support/log/Keys.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as SignedLog from "#test/support/SignedLog.ts"
import { tamper } from "#test/support/Tampering.ts"
import { assert, it, layer } from "#test/support/Test.ts"

const facts = (count: number): ReadonlyArray<SignedLog.Fact> =>
  Array.from({ length: count }, (_, index) => ({ stream: `source-${index % 7}`, type: "SourceRecovered", data: { index } }))

/** Returns the error with which the notary rejects a log, on a machine that has stored no checkpoint. */
const refusal = EventsSignedLog.make(keysOf(signer)).pipe(
  Effect.flatMap(({ recognise }) => Effect.flip(recognise([]))),
  Effect.map(({ message }) => message)
)

/** Changes of a signed log by a superuser, and the error of the notary. */
const unknownLogs: ReadonlyArray<readonly [name: string, statements: ReadonlyArray<string>, refused: RegExp]> = [
  [
    "an altered log whose checkpoints and tiles were deleted",
    ["UPDATE vatproof.events SET units = 5 WHERE position = 3", "DELETE FROM vatproof.checkpoints", "DELETE FROM vatproof.tiles"],
    /There are 10 events and no checkpoint/u
  ],
  ["a log whose checkpoints were deleted", ["DELETE FROM vatproof.checkpoints"], /There are 10 events and no checkpoint/u],
  ["a log whose tiles were deleted", ["DELETE FROM vatproof.tiles"], /Tile 0\/0 is incomplete/u],
  [
    "a log whose newest checkpoint was deleted",
    ["DELETE FROM vatproof.checkpoints WHERE size > 4"],
    /The stored tree is larger than the newest checkpoint of 4 events/u
  ],
  [
    "an altered log whose newest checkpoint was deleted, if the unsigned events span more than an hour",
    [
      "UPDATE vatproof.events SET units = 5, recorded_at = recorded_at + interval '61 minutes' WHERE position = 9",
      "DELETE FROM vatproof.checkpoints WHERE size > 4",
      "UPDATE vatproof.tiles SET hashes = substr(hashes, 1, 4 * 32)"
    ],
    /the 6 events after it are more than 100000 or span more than 1h/u
  ],
  [
    "an altered log whose newest checkpoint was deleted, if more than 100,000 events are unsigned",
    [
      "UPDATE vatproof.events SET position = 100004 WHERE position = 9",
      "UPDATE vatproof.logs SET next_position = 100005",
      "DELETE FROM vatproof.checkpoints WHERE size > 4",
      "UPDATE vatproof.tiles SET hashes = substr(hashes, 1, 4 * 32)"
    ],
    /the 100001 events after it are more than 100000 or span/u
  ],
  [
    "an altered log of which only the checkpoint of the new log is left",
    [
      "UPDATE vatproof.events SET units = 5, recorded_at = now()",
      "DELETE FROM vatproof.checkpoints WHERE size > 0",
      "DELETE FROM vatproof.tiles"
    ],
    /The only checkpoint in the database is that of the new log, but the log has 10 events, and DATA_DIR has no checkpoint: restore DATA_DIR/u
  ],
  [
    "a log with a forged checkpoint",
    ["UPDATE vatproof.checkpoints SET note = replace(note, E'\\n10\\n', E'\\n4\\n') WHERE size = 10"],
    /was not signed by a key in NOTARY_KEY/u
  ],
  [
    "a log whose events and checkpoints were deleted, but not its tiles",
    ["DELETE FROM vatproof.events", "UPDATE vatproof.logs SET next_position = 0", "DELETE FROM vatproof.checkpoints"],
    /There are 0 events and no checkpoint/u
  ]
]

const tables = ["events", "tiles", "checkpoints", "logs"]

/** A log of ten events, signed at four and at ten events. */
const signedTwice = Effect.gen(function* () {
  yield* SignedLog.appendAll(facts(4))
  yield* SignedLog.sign(4)
  yield* SignedLog.appendAll(facts(6))
  yield* SignedLog.sign(10)
  for (const table of tables) yield* MigratedDatabase.execute(`CREATE TABLE public.kept_${table} AS TABLE vatproof.${table}`)
})

const restore = tamper(
  ...tables.flatMap((table) => [`DELETE FROM vatproof.${table}`, `INSERT INTO vatproof.${table} TABLE public.kept_${table}`])
)

const testLayer = Layer.effectDiscard(signedTwice).pipe(Layer.provideMerge(SignedLog.layer))

layer(testLayer, { excludeTestServices: true })("The notary", (it) => {
  it.effect.each(unknownLogs)("rejects %s", function* ([_, statements, refused]) {
    yield* tamper(...statements)
    const message = yield* refusal
    yield* restore
    assert.match(message, refused)
  })
})

it.live("The notary rejects a log that already has events but has no checkpoint", () =>
  Effect.gen(function* () {
    yield* SignedLog.appendAll(facts(1))
    assert.match(yield* refusal, /There are 1 events and no checkpoint/u)
  }).pipe(Effect.provide(SignedLog.ground))
)

it.live("The notary signs the event that opened the log first, and rejects later events on a machine without a checkpoint", () =>
  Effect.gen(function* () {
    yield* MigratedDatabase.openLog
    const start = Effect.scoped(Layer.build(Layer.fresh(SignedLog.notaryOf(keysOf(signer)))))
    yield* Effect.all([start, start], { concurrency: "unbounded" })
    const sizes = (yield* (yield* TreeStore).checkpointsFrom(0, 10)).map(({ size }) => size)
    assert.deepStrictEqual(sizes, [1])
    yield* SignedLog.appendAll(facts(3))
    assert.match(yield* refusal, /is that of the new log, but the log has 4 events/u)
    yield* SignedLog.sign(4)
  }).pipe(Effect.provide(SignedLog.ground))
)
