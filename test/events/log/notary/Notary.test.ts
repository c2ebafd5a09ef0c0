import { Effect, Exit, Layer, Option, Ref, Result, Schedule, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as Checkpoint from "#events/log/merkle/Checkpoint.ts"
import { append, empty, root } from "#events/log/merkle/MerkleTree.ts"
import { leafHashes } from "#events/log/notary/StoredLeaf.ts"
import * as Notary from "#events/log/notary/Notary.ts"
import { TreeStore } from "#events/log/notary/TreeStore.ts"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"
import { keysOf, signerOf } from "#test/support/log/Keys.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as SignedLog from "#test/support/SignedLog.ts"
import * as SkippingClock from "#test/support/SkippingClock.ts"
import { tamper } from "#test/support/Tampering.ts"
import { assert, layer } from "#test/support/Test.ts"

const signer = signerOf("vatproof.example/log/0")
const log = { origin: signer.name, verifiers: [signer] }
const other = signerOf(signer.name, "other")

/** Starts a notary, which runs until the scope closes. Without `stored` it runs on the machine that stored the newest checkpoint. */
const startNotary = Effect.fnUntraced(function* (stored?: Option.Option<string>, keys = keysOf(signer)) {
  const seen = stored ?? Option.map(yield* (yield* TreeStore).newest, ({ note }) => note)
  const lastSeen = yield* Ref.make(seen)
  yield* Layer.build(
    Notary.layer({
      keys,
      loadSeen: Effect.succeed(Option.toArray(seen).map((note) => ({ note, at: "a file" }))),
      saveSeen: (note) => Ref.set(lastSeen, Option.some(note))
    })
  ).pipe(Effect.provide(Layer.empty, { local: true }))
  return lastSeen
})

const appendMany = Effect.fnUntraced(function* (count: number) {
  const events = yield* EventStore
  yield* Effect.forEach(
    Array.from({ length: count }, (_, index) => index),
    (index) =>
      events.append({
        stream: `source-${index % 7}`,
        expectedVersion: null,
        events: [{ type: "SourceRecovered", schemaVersion: 1, data: { index } }],
        charge: null
      }),
    { concurrency: "unbounded", discard: true }
  )
})

/** Waits until the newest checkpoint covers `size` events. */
const untilSigned = Effect.fnUntraced(function* (size: number, verifier = signer) {
  const { newest } = yield* TreeStore
  const reached = yield* newest.pipe(
    Effect.repeat({ until: Option.exists((checkpoint) => checkpoint.size >= size), schedule: Schedule.spaced("20 millis") }),
    Effect.timeout("15 seconds")
  )
  return Result.getOrThrow(Checkpoint.open(pureCrypto, Option.getOrThrow(reached).note, { ...log, verifiers: [verifier] }))
})

const rootOfEvents = Effect.fnUntraced(function* (size: number) {
  const events = yield* (yield* EventStore).read(0, size)
  const hashes = Result.getOrThrow(leafHashes(pureCrypto, events, { from: 0, to: size }))
  return root(pureCrypto.sha256, append(pureCrypto.sha256, empty, hashes).tree)
})

/** Appends `count` events, and waits for their checkpoint. */
const signedLog = Effect.fnUntraced(function* (count: number) {
  const { size } = Option.getOrThrow(yield* (yield* TreeStore).newest)
  yield* appendMany(count)
  const lastSeen = yield* Effect.scoped(Effect.tap(startNotary(), () => untilSigned(size + count)))
  return yield* Ref.get(lastSeen)
})

/** Simulates the restore of an old backup, in which the log has five events and no signatures. */
const cutToFive = tamper(
  "DELETE FROM vatproof.events WHERE position >= 5",
  "UPDATE vatproof.logs SET next_position = 5",
  "DELETE FROM vatproof.checkpoints",
  "DELETE FROM vatproof.tiles"
)

const refusal = <A, E extends { readonly message: string }, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(Effect.scoped(effect)), ({ message }) => message)

/** Removes all events and the signed tree. */
const emptied = tamper(
  ...["events", "streams", "checkpoints", "tiles"].map((table) => `DELETE FROM vatproof.${table}`),
  "UPDATE vatproof.logs SET next_position = 0, last_recorded_at = '-infinity'",
  "UPDATE vatproof.notaries SET holder = NULL, held_until = '-infinity'"
)

/** Starts a test with an empty log, whose first checkpoint is signed. */
const signedEmptyLog = Effect.andThen(emptied, Effect.scoped(startNotary()))

layer(SignedLog.ground, { excludeTestServices: true })("Notary", (it) => {
  it.effect("signs the log, and continues to sign after a restart and on another replica", function* () {
    yield* signedEmptyLog
    yield* appendMany(300)
    const first = yield* Scope.make()
    yield* startNotary().pipe(Effect.provideService(Scope.Scope, first))
    const one = yield* untilSigned(300)
    assert.deepStrictEqual(one.root, yield* rootOfEvents(300))

    const lastSeen = yield* startNotary()
    yield* appendMany(700)
    yield* untilSigned(1000)
    yield* Scope.close(first, Exit.void)
    yield* appendMany(1)
    const two = yield* untilSigned(1001)
    assert.deepStrictEqual(two.root, yield* rootOfEvents(1001))
    const note = Option.getOrThrow(yield* Ref.get(lastSeen))
    assert.strictEqual(Result.getOrThrow(Checkpoint.open(pureCrypto, note, log)).size, 1001)
  })

  it.effect.each([
    ["that was killed", "2 seconds"],
    ["that was killed before the clock was set back", "1 day"]
  ] as const)("takes over from a replica %s", function* ([_, remaining]) {
    yield* signedEmptyLog
    yield* MigratedDatabase.execute(
      `UPDATE vatproof.notaries SET holder = gen_random_uuid(), held_until = now() + interval '${remaining}'`
    )
    yield* appendMany(3)
    yield* startNotary()
    assert.strictEqual((yield* untilSigned(3)).size, 3)
  })

  it.effect("takes over at once from a replica that stopped right after its start", function* () {
    yield* emptied
    yield* Effect.repeat(Effect.scoped(startNotary()), { times: 9 })
    yield* appendMany(1)
    yield* startNotary()
    yield* Effect.timeout(untilSigned(1), "3 seconds")
  })

  it.effect("signs a backlog of events in steps of at most 16,384 events", function* () {
    yield* signedEmptyLog
    yield* MigratedDatabase.execute(
      "UPDATE vatproof.notaries SET holder = gen_random_uuid(), held_until = now() + interval '1 hour'"
    )
    yield* MigratedDatabase.execute(`INSERT INTO vatproof.events SELECT 0, n, 'source-vies', n + 1, gen_random_uuid(), 'SourceRecovered', 1,
      now(), now(), gen_random_uuid(), NULL, NULL, NULL, 0, '{}', '{}' FROM generate_series(0, 17999) n`)
    yield* MigratedDatabase.execute("UPDATE vatproof.logs SET next_position = 18000, last_recorded_at = now()")
    yield* MigratedDatabase.execute("UPDATE vatproof.notaries SET holder = NULL, held_until = '-infinity'")
    yield* startNotary()
    const { root } = yield* untilSigned(18_000)
    assert.deepStrictEqual(root, yield* rootOfEvents(18_000))
    const sizes = (yield* (yield* TreeStore).checkpointsFrom(0, 10)).map(({ size }) => size)
    assert.deepStrictEqual(sizes, [0, 16_384, 18_000])
  })

  it.effect("spreads the work on the events of one busy second over most of the next second", function* () {
    yield* signedEmptyLog
    yield* appendMany(1100)
    const clock = SkippingClock.make()
    yield* clock.on(startNotary())
    const { root } = yield* untilSigned(1100)
    assert.deepStrictEqual(root, yield* rootOfEvents(1100))
    // Work takes no time on this clock, so each pause is the whole interval between two batches of 512 events.
    const [second = 0, third = 0] = clock.waits()
    assert.closeTo(second, (800 * 512) / 1100, 0.001)
    assert.closeTo(second + third, (800 * 1024) / 1100, 0.001)
  })

  it.effect("rejects a log that is shorter than its signed checkpoint", function* () {
    yield* signedEmptyLog
    yield* signedLog(10)
    yield* tamper("DELETE FROM vatproof.events WHERE position >= 8")
    assert.match(yield* refusal(startNotary()), /The log has 8 events, but 10 were signed/u)
  })

  it.effect("rejects a log whose newest events were changed, and reports their positions", function* () {
    yield* signedEmptyLog
    yield* signedLog(10)
    yield* tamper("UPDATE vatproof.events SET units = 5 WHERE position = 7")
    assert.match(yield* refusal(startNotary()), /position 7 differs from the signed event/u)
  })

  it.effect("rejects a log that is shorter than the last checkpoint that the notary's machine stored", function* () {
    yield* signedEmptyLog
    const seen = yield* signedLog(10)
    yield* cutToFive
    assert.match(yield* refusal(startNotary(seen)), /10 events were signed before, but the database has only 0/u)
  })

  it.effect("rejects a signed log that contradicts the last checkpoint that the notary's machine stored", function* () {
    yield* signedEmptyLog
    const seen = yield* signedLog(10)
    yield* tamper(
      "UPDATE vatproof.events SET units = 5 WHERE position = 3",
      "DELETE FROM vatproof.checkpoints WHERE size > 0",
      "DELETE FROM vatproof.tiles"
    )
    yield* signedLog(2)
    assert.match(
      yield* refusal(startNotary(seen)),
      /The first 10 events of the log differ from the events that were signed before/u
    )
  })

  it.effect("rejects a log whose tiles were changed", function* () {
    yield* signedEmptyLog
    yield* signedLog(300)
    yield* tamper(
      "UPDATE vatproof.tiles SET hashes = overlay(hashes placing '\\x00'::bytea from 3) WHERE level = 1 AND index = 0"
    )
    assert.match(yield* refusal(startNotary()), /The stored tree does not match the signed checkpoint of 300 events/u)
  })

  it.effect("signs an empty log even if several replicas start at once", function* () {
    yield* emptied
    yield* Effect.all([startNotary(), startNotary(), startNotary()], { concurrency: "unbounded" })
    assert.strictEqual((yield* untilSigned(0)).size, 0)
    yield* appendMany(2)
    yield* startNotary()
    assert.strictEqual((yield* untilSigned(2)).size, 2)
  })

  it.effect("rejects a log that was signed with an unknown key", function* () {
    yield* signedEmptyLog
    yield* signedLog(3)
    assert.match(yield* refusal(startNotary(Option.none(), keysOf(other))), /was not signed by a key in NOTARY_KEY/u)
  })

  it.effect("continues with a new key if the public key of the old key is configured", function* () {
    yield* signedEmptyLog
    const seen = yield* signedLog(300)
    yield* startNotary(seen, keysOf(other, signer))
    yield* appendMany(1)
    const signed = yield* untilSigned(301, other)
    assert.deepStrictEqual(signed.root, yield* rootOfEvents(301))
    const notes = (yield* (yield* TreeStore).checkpointsFrom(0, 10)).map(({ note }) => note)
    const signedBy = (key: typeof signer) =>
      notes.map((note) => Result.isSuccess(Checkpoint.open(pureCrypto, note, { ...log, verifiers: [key] })))
    assert.deepStrictEqual(
      [signedBy(signer), signedBy(other)],
      [
        [true, true, false],
        [false, false, true]
      ]
    )
  })

  it.effect("continues with a new key, even if a replica still signs with the old key at the same time", function* () {
    yield* signedEmptyLog
    const former = yield* Scope.make()
    yield* startNotary().pipe(Effect.provideService(Scope.Scope, former))
    yield* appendMany(1)
    yield* untilSigned(1)
    yield* startNotary(Option.none(), keysOf(other, signer))
    yield* appendMany(1)
    yield* untilSigned(2)
    yield* Scope.close(former, Exit.void)
    yield* appendMany(1)
    const signed = yield* untilSigned(3, other)
    assert.deepStrictEqual(signed.root, yield* rootOfEvents(3))
  })

  it.effect(
    "rejects a log that is shorter than the last checkpoint that the notary's machine stored, even with a new key",
    function* () {
      yield* signedEmptyLog
      const seen = yield* signedLog(10)
      yield* cutToFive
      assert.match(yield* refusal(startNotary(seen, keysOf(other, signer))), /10 events were signed before/u)
    }
  )

  it.effect("rejects a newer checkpoint of the old key if the notary's machine has signed with the new key", function* () {
    yield* signedEmptyLog
    const before = yield* signedLog(3)
    const own = yield* Effect.scoped(
      Effect.gen(function* () {
        const lastSeen = yield* startNotary(before, keysOf(other, signer))
        yield* appendMany(1)
        yield* untilSigned(4, other)
        return yield* Ref.get(lastSeen)
      })
    )
    // An attacker with the former key signs the next events.
    yield* appendMany(1)
    yield* Effect.scoped(Effect.andThen(startNotary(Option.none(), keysOf(signer, other)), untilSigned(5)))
    assert.match(yield* refusal(startNotary(own, keysOf(other, signer))), /or add its public key after the new key/u)
  })

  it.effect("signs with each of its keys, so that each public key verifies the checkpoint", function* () {
    yield* signedEmptyLog
    yield* startNotary(Option.none(), { name: signer.name, signers: [other, signer], verifiers: [other, signer] })
    yield* appendMany(3)
    assert.strictEqual((yield* untilSigned(3, signer)).size, 3)
    assert.strictEqual((yield* untilSigned(3, other)).size, 3)
  })

  it.effect(
    "stores checkpoints and tiles that neither the service's database role nor a superuser's UPDATE or DELETE can change",
    function* () {
      yield* signedEmptyLog
      yield* signedLog(3)
      const sql = yield* SqlClient.SqlClient
      const attempts = [
        "UPDATE vatproof.checkpoints SET note = ''",
        "DELETE FROM vatproof.checkpoints",
        "TRUNCATE vatproof.checkpoints",
        "UPDATE vatproof.tiles SET hashes = hashes || hashes",
        "DELETE FROM vatproof.tiles",
        "TRUNCATE vatproof.tiles",
        "DROP TABLE vatproof.tiles",
        "ALTER TABLE vatproof.tiles DISABLE TRIGGER append_only",
        "UPDATE vatproof.notaries SET holder = NULL"
      ]
      for (const attempt of attempts) assert.isTrue(Exit.isFailure(yield* Effect.exit(sql.unsafe(attempt))), attempt)
      for (const attempt of [
        ...attempts.slice(0, 3),
        "UPDATE vatproof.tiles SET hashes = substr(hashes, 1, 32)",
        ...attempts.slice(4, 8),
        "ALTER TABLE vatproof.checkpoints DISABLE TRIGGER append_only",
        "DROP SCHEMA vatproof CASCADE"
      ]) {
        assert.isTrue(Exit.isFailure(yield* Effect.exit(MigratedDatabase.execute(attempt))), attempt)
      }
      const none = Exit.isFailure(
        yield* Effect.exit(MigratedDatabase.execute("UPDATE vatproof.tiles SET hashes = hashes || hashes"))
      )
      assert.isFalse(none, "a tile may grow")
    }
  )
})
