import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer, Result } from "effect"
import { logCatalogue } from "#app/layers/LogCatalogue.ts"
import * as DatabaseAudit from "#events/log/verify/DatabaseAudit.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as Checkpoint from "#events/log/merkle/Checkpoint.ts"
import { append, empty, root } from "#events/log/merkle/MerkleTree.ts"
import { formatVerifier, type Verifiers } from "#events/log/merkle/NoteKeys.ts"
import { leafHashes } from "#events/log/notary/StoredLeaf.ts"
import { TreeStore } from "#events/log/notary/TreeStore.ts"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"
import { assert, layer } from "#test/support/Test.ts"
import { signer, signerOf } from "#test/support/log/Keys.ts"
import * as SchemaOfProgram from "#test/support/SchemaOfProgram.ts"
import * as SignedLog from "#test/support/SignedLog.ts"
import { attacks, facts, made, restore } from "#test/support/LogAttacks.ts"
import { tamper } from "#test/support/Tampering.ts"

const audit = (notes: ReadonlyArray<string> = [], verifiers: Verifiers = [signer], isFast = false) =>
  Effect.flatMap(SchemaOfProgram.comparison, (schema) =>
    DatabaseAudit.run({
      verifiers,
      kept: notes.map((note) => ({ note, at: "a file" })),
      schema,
      isFast,
      progress: () => Effect.void
    })
  )

const said = ({ findings }: Pick<DatabaseAudit.AuditReport, "findings">) =>
  findings.map(({ message, position }) => `${position ?? "-"}: ${message}`).join("\n")

const ground = Layer.mergeAll(SignedLog.layer, logCatalogue, NodeServices.layer, NodeCrypto.layerSecureRandom)

layer(ground, { excludeTestServices: true })("The verification of a database", (it) => {
  it.effect("reports nothing for an intact log", function* () {
    yield* made
    const report = yield* audit()
    const signedBy = [formatVerifier(signer)]
    const documents = { kept: 61, erased: 0 }
    assert.deepStrictEqual(
      report,
      { events: 605, signed: 600, checkpoints: 3, signedBy, documents, adopted: [], findings: [], count: 0 },
      said(report)
    )
  })

  it.effect.each(attacks)("detects %s, and reports its position", function* ([_, statements, finding]) {
    yield* tamper(...statements)
    const reports = [yield* audit(), yield* audit([], [signer], true)]
    yield* restore
    for (const report of reports) {
      assert.match(said(report), finding)
      assert.isAtMost(report.count, 40, said(report))
    }
  })

  it.effect(
    "compares the log with a checkpoint kept outside the database, and so detects that the newest events were removed",
    function* () {
      const { note } = yield* SignedLog.untilSigned(600)
      yield* tamper(
        "DELETE FROM vatproof.events WHERE position >= 300",
        "UPDATE vatproof.logs SET next_position = 300",
        "DELETE FROM vatproof.checkpoints WHERE size > 300"
      )
      const report = yield* audit([note])
      yield* restore
      assert.match(
        said(report),
        /^599: the checkpoint in a file has 600 events, but the database has only 250 signed events: it was restored to an earlier state, .* then run vatproof notary adopt$/mu
      )
      assert.match(said(report), /^300: the events from this position to 599 are missing$/mu)
    }
  )

  it.effect(
    "compares the log with a checkpoint kept outside the database, and so locates a changed event even if the log was signed again",
    function* () {
      const tree = yield* TreeStore
      const kept = (yield* tree.checkpointsFrom(1, 2)).map(({ note }) => note)
      yield* tamper("UPDATE vatproof.events SET units = 0 WHERE position = 321", "DELETE FROM vatproof.checkpoints")
      const deleted = yield* audit(kept)
      const events = yield* (yield* EventStore).read(0, 400)
      const leaves = Result.getOrThrow(leafHashes(pureCrypto, events, { from: 0, to: 400 }))
      const root400 = root(pureCrypto.sha256, append(pureCrypto.sha256, empty, leaves).tree)
      const forged = { origin: signer.name, size: 400, root: root400, extensions: [] }
      const note = Result.getOrThrow(Checkpoint.sign(forged, [signer]))
      yield* tamper(
        "DELETE FROM vatproof.tiles",
        `INSERT INTO vatproof.checkpoints (log_id, size, note) VALUES (0, 400, '${note}')`
      )
      const resigned = yield* audit(kept)
      yield* restore
      assert.match(
        said(deleted),
        /^599: the checkpoint in a file has 600 events, but the database has only 0 signed events: it was restored/mu
      )
      assert.match(said(deleted), /^321: the event differs from the signed event$/mu)
      assert.match(
        said(resigned),
        /^599: .* signed checkpoint of 600 events \(a file\): the log was changed from position 250 to 599, or from position 400 to 599 if/mu
      )
    }
  )

  it.effect(
    "rejects a stored checkpoint that no known key has signed, and a malformed checkpoint that the auditor kept outside the database",
    function* () {
      const report = yield* audit([], [signerOf(signer.name, "forger")])
      assert.match(said(report), /the checkpoint of 600 events is not valid: No known key has signed the note/u)
      assert.match(said(yield* audit(["no note"])), /^-: the checkpoint in a file is not valid: /mu)
    }
  )

  it.effect("reports nothing while a service appends events", function* () {
    yield* restore
    const busy = Effect.forever(SignedLog.appendAll(facts(50)))
    const report = yield* Effect.raceFirst(Effect.repeat(audit(), { times: 5 }), busy)
    assert.deepStrictEqual(report.findings, [], said(report))
  })
})
