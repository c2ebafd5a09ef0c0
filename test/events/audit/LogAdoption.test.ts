import { Effect, Layer, Option, Ref, Result } from "effect"
import { Hex } from "effect/encoding"
import { logCatalogue } from "#app/layers/LogCatalogue.ts"
import { logStream } from "#domain/log/LogReadEvents.ts"
import * as DatabaseAudit from "#events/log/verify/DatabaseAudit.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as LogAdoption from "#events/audit/LogAdoption.ts"
import { append, empty, root } from "#events/log/merkle/MerkleTree.ts"
import { leafHashes } from "#events/log/notary/StoredLeaf.ts"
import * as Notary from "#events/log/notary/Notary.ts"
import { TreeStore } from "#events/log/notary/TreeStore.ts"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"
import { assert, layer } from "#test/support/Test.ts"
import { keysOf, signer, signerOf } from "#test/support/log/Keys.ts"
import * as SchemaOfProgram from "#test/support/SchemaOfProgram.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as SignedLog from "#test/support/SignedLog.ts"
import { tamper } from "#test/support/Tampering.ts"

const facts = (count: number): ReadonlyArray<SignedLog.Fact> =>
  Array.from({ length: count }, (_, index) => ({ stream: `key-${index % 3}`, type: "Tested", data: { index } }))

/** Simulates a machine that has stored the checkpoint `note`. Returns functions to run its notary and to adopt a log. */
const machine = Effect.fnUntraced(function* (note: Option.Option<string>, keys = keysOf(signer)) {
  const seen = yield* Ref.make(note)
  const saveSeen = (newer: string) => Ref.set(seen, Option.some(newer))
  const loadSeen = Effect.map(Ref.get(seen), (kept) => Option.toArray(kept).map((note) => ({ note, at: "a file" })))
  const options = { keys, loadSeen, saveSeen, replace: saveSeen }
  type Adoption = Effect.Success<ReturnType<typeof LogAdoption.make<never>>>
  /** Runs an adoption as the owner of the tables. */
  const adopting = <A, E>(use: (adoption: Adoption) => Effect.Effect<A, E>) =>
    LogAdoption.make(options).pipe(
      Effect.flatMap(use),
      Effect.provide(Layer.merge(TreeStore.layer, EventStore.layer), { local: true }),
      MigratedDatabase.asAdministrator
    )
  return {
    adoption: {
      refusal: adopting(({ refusal }) => refusal),
      current: adopting(({ current }) => current),
      adopt: (history: LogAdoption.History) => adopting(({ adopt }) => adopt(history))
    },
    notary: Effect.exit(Effect.scoped(Effect.andThen(Notary.make(options), SignedLog.untilSigned(0))))
  }
})

const historyOf = Effect.fnUntraced(function* (events: number) {
  const read = yield* (yield* EventStore).read(0, events)
  const leaves = Result.getOrThrow(leafHashes(pureCrypto, read, { from: 0, to: events }))
  return { events, root: Hex.encode(root(pureCrypto.sha256, append(pureCrypto.sha256, empty, leaves).tree)) }
})

const audited = Effect.map(
  Effect.flatMap(SchemaOfProgram.comparison, (schema) =>
    DatabaseAudit.run({ verifiers: [signer], kept: [], schema, isFast: false, progress: () => Effect.void })
  ),
  ({ adopted, findings }) => ({ adopted: adopted.length, findings })
)

/** Appends 700 events, and signs the log at 500 and at 700 events. Returns the newest checkpoint. */
const signedLog = Effect.gen(function* () {
  yield* SignedLog.appendAll(facts(500))
  yield* SignedLog.sign(500)
  yield* SignedLog.appendAll(facts(200))
  return (yield* SignedLog.sign(700)).note
})

const repairable: ReadonlyArray<readonly [name: string, statements: ReadonlyArray<string>]> = [
  ["checkpoints and tiles were deleted", ["DELETE FROM vatproof.checkpoints", "DELETE FROM vatproof.tiles"]],
  ["checkpoints were deleted", ["DELETE FROM vatproof.checkpoints"]],
  ["tiles were deleted", ["DELETE FROM vatproof.tiles"]]
]

layer(Layer.merge(SignedLog.layer, logCatalogue), { excludeTestServices: true })("the adoption of a log by an operator", (it) => {
  it.effect("rebuilds the Merkle tree from the events, so that the notary accepts a log that it had rejected", function* () {
    yield* signedLog
    let size = 700
    let adoptions = 0
    for (const [name, statements] of repairable) {
      yield* tamper(...statements)
      const { adoption, notary } = yield* machine(Option.none())
      assert.strictEqual((yield* notary)._tag, "Failure", name)
      assert.isTrue(Option.isSome(yield* adoption.refusal), name)
      assert.deepStrictEqual(yield* adoption.current, yield* historyOf(size))
      const { position } = yield* adoption.adopt(yield* historyOf(size))
      size = position + 1
      assert.isTrue(Option.isNone(yield* adoption.refusal), name)
      assert.strictEqual((yield* notary)._tag, "Success", name)
      adoptions += 1
      assert.deepStrictEqual(yield* audited, { adopted: adoptions, findings: [] }, name)
    }
    const adopted = yield* (yield* EventStore).readStream(logStream, 0, 10)
    assert.deepStrictEqual(
      adopted.map(({ type }) => type),
      ["LogAdopted", "LogAdopted", "LogAdopted"]
    )
  })

  it.effect(
    "accepts a log that is shorter than the checkpoint on the notary's machine, and records that checkpoint in the log",
    function* () {
      const { events } = yield* (yield* machine(Option.none())).adoption.current
      yield* SignedLog.appendAll(facts(5))
      const { note } = yield* SignedLog.sign(events + 5)
      yield* tamper(
        `DELETE FROM vatproof.events WHERE position >= ${events}`,
        `UPDATE vatproof.logs SET next_position = ${events}`,
        `DELETE FROM vatproof.checkpoints WHERE size > ${events}`,
        `UPDATE vatproof.tiles SET hashes = substr(hashes, 1, ${(events % 256) * 32}) WHERE level = 0 AND index = ${Math.floor(events / 256)}`
      )
      const { adoption, notary } = yield* machine(Option.some(note))
      assert.match(Option.getOrThrow(yield* adoption.refusal), /events were signed before, but the database has only/u)
      yield* adoption.adopt(yield* adoption.current)
      assert.strictEqual((yield* notary)._tag, "Success")
      const [last] = (yield* (yield* EventStore).readStream(logStream, 0, 10)).toReversed()
      assert.match(last?.data ?? "", new RegExp(`"remembered":\\[\\{"events":${events + 5},`, "u"))
    }
  )

  it.effect("fails if the log contradicts the signed history, or is not the log that the operator verified", function* () {
    const { adoption } = yield* machine(Option.none())
    const current = yield* adoption.current
    const other = yield* Effect.flip(adoption.adopt({ ...current, root: "00".repeat(32) }))
    assert.match(other.message, /do not have the root hash 0000/u)
    const stranger = (yield* machine(Option.none(), keysOf(signerOf(signer.name, "stranger")))).adoption
    assert.match(
      (yield* Effect.flip(stranger.adopt(current))).message,
      /The newest checkpoint in the database was signed by an unknown key/u
    )
    const last = `level = 0 AND index = ${Math.floor(current.events / 256)}`
    yield* tamper(`UPDATE vatproof.tiles SET hashes = hashes || sha256('x') WHERE ${last}`)
    assert.match((yield* Effect.flip(adoption.adopt(current))).message, /The stored tree has more leaves in tile 0\/2 than/u)
    yield* tamper(`UPDATE vatproof.tiles SET hashes = substr(hashes, 1, octet_length(hashes) - 32) WHERE ${last}`)
    yield* tamper("UPDATE vatproof.events SET units = 5 WHERE position = 3")
    const altered = yield* Effect.flip(adoption.adopt(yield* adoption.current))
    assert.match(altered.message, /The events contradict the database.s newest checkpoint of \d+ events/u)
    yield* tamper("DELETE FROM vatproof.checkpoints")
    const changed = yield* Effect.flip(adoption.adopt(yield* adoption.current))
    assert.match(changed.message, /contradicts the events in tile 0\/0/u)
  })
})
