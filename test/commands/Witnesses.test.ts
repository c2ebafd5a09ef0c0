import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DateTime } from "effect"
import { formatVerifier } from "#events/log/merkle/NoteKeys.ts"
import { checkpointOf, layerSigned, newAuditor, temporaryFolder } from "#test/support/Auditing.ts"
import { command } from "#test/support/CommandLine.ts"
import { assert, layer } from "#test/support/Test.ts"
import { cosign, formatWitness, witnessOf } from "#test/support/log/Witness.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { signer } from "#test/support/log/Keys.ts"

const witness = witnessOf("witness.example/w1")
const options = ["--key", formatVerifier(signer), "--witness", formatWitness(witness)]
const at = DateTime.makeUnsafe("2026-11-23T09:30:00Z")
const sighting = /on 2026-11-23T09:30:00\.000Z: all of them existed then/u

layer(layerSigned(), { excludeTestServices: true })("`audit verify --witness`", (it) => {
  it.effect("reports when the witness saw the log of a database", function* () {
    const service = yield* RunningService.RunningService
    const file = join(yield* temporaryFolder, "cosigned.txt")
    yield* service.validate("ATU12345678")
    yield* checkpointOf(service, 1)
    const { text } = yield* service.get("/v1/audit/checkpoint")
    writeFileSync(file, cosign(text, witness, at))
    const verified = yield* command("audit", "verify", "--checkpoint", file, ...options)
    assert.match(verified.output, sighting)
    assert.include(verified.output, "witness.example/w1 saw the first ")
    assert.isNull(verified.failure)
  })

  it.effect("accepts a cosignature in a proof and in an export, and rejects a forged one", function* () {
    const service = yield* RunningService.RunningService
    const folder = yield* temporaryFolder
    yield* service.validate("ATU12345678")
    yield* checkpointOf(service, 1)
    const { headers } = yield* newAuditor()
    const proof = (yield* service.get("/v1/audit/proofs/0", { headers })).text
    const file = join(folder, "one.tlog-proof")
    const verify = command("audit", "verify", "--proof", file, ...options)
    writeFileSync(file, proof)
    assert.include((yield* verify).output, "None of these checkpoints has a cosignature")
    const start = proof.indexOf("\n\n") + 2
    writeFileSync(file, proof.slice(0, start) + cosign(proof.slice(start), witness, at))
    assert.match((yield* verify).output, sighting)

    const directory = join(folder, "export")
    yield* command("audit", "export", "--out", directory)
    const note = readFileSync(join(directory, "checkpoint"), "utf8")
    const kept = join(folder, "kept.txt")
    const verifyExport = command("audit", "verify", "--export", directory, "--checkpoint", kept, ...options)
    writeFileSync(kept, cosign(note, witness, at))
    assert.match((yield* verifyExport).output, sighting)
    writeFileSync(kept, cosign(note, { ...witness, sign: signer.sign }, at))
    assert.match((yield* verifyExport).failure ?? "", /cosignature of witness\.example\/w1 is invalid/u)
  })
})
