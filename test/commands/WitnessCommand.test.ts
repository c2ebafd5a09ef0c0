import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import { join } from "node:path"
import { DateTime, Effect, Redacted, Result } from "effect"
import * as Checkpoint from "#events/merkle/Checkpoint.ts"
import { cosign, witnessOf } from "#events/merkle/Cosignature.ts"
import { formatVerifier, formatWitness } from "#events/merkle/NoteKeys.ts"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"
import { checkpointOf, layerSigned, logName, newAuditor, signer, temporaryFolder } from "#test/support/Auditing.ts"
import { command } from "#test/support/CommandLine.ts"
import { assert, layer } from "#test/support/Test.ts"
import { secretOf, signerOf } from "#test/support/log/Keys.ts"
import * as RunningService from "#test/support/RunningService.ts"

const witness = witnessOf(pureCrypto, signerOf("witness.example/w1"))
const witnessKey = formatWitness(witness)
const logKey = formatVerifier(signer)
const at = DateTime.makeUnsafe("2026-11-23T09:30:00Z")

/** Starts a log server whose responses never end. Returns its URL. */
const endlessLog = Effect.acquireRelease(
  Effect.callback<Server>((resume) => {
    const server = createServer((_, response) => {
      const more = () => {
        while (response.write("x".repeat(16_384)));
      }
      response.on("drain", more)
      more()
    })
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
  }),
  (server) => Effect.sync(() => server.close().closeAllConnections())
).pipe(
  Effect.map((server) => {
    const address = server.address()
    return `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`
  })
)

/** Creates a witness with its own key and folder. */
const makeWitness = Effect.gen(function* () {
  const service = yield* RunningService.RunningService
  const folder = yield* temporaryFolder
  const secret = join(folder, "witness.key")
  writeFileSync(secret, Redacted.value(secretOf("witness.example/w1")))
  const out = join(folder, "cosigned.txt")
  const options = ["--key", logKey, "--signing-key", secret, "--state", folder, "--out", out]
  const runOn = (log: string) => command("notary", "witness", log, ...options)
  /** Replaces the stored checkpoint of the witness by a checkpoint with another root hash, also signed with the log's key. */
  const remember = (size: number) => {
    const other = { origin: logName, size, root: pureCrypto.sha256("another history"), extensions: [] }
    const [state = ""] = readdirSync(folder).filter((name) => name.startsWith("witness-"))
    writeFileSync(join(folder, state), Result.getOrThrow(Checkpoint.sign(other, [signer])))
  }
  return { service, folder, out, run: runOn(`${service.baseUrl}/v1/audit/`), runOn, remember }
})

layer(layerSigned(), { excludeTestServices: true })("`vatproof notary witness`", (it) => {
  it.effect(
    "cosigns the checkpoints of a growing log, so that `audit verify` reports when the witness saw the log",
    function* () {
      const { out, run, service } = yield* makeWitness
      for (const size of [1, 2]) {
        yield* service.validate("ATU12345678")
        yield* checkpointOf(service, size)
        const { failure, output } = yield* run
        assert.isNull(failure)
        assert.include(output, `is cosigned with ${size} events`)
        assert.include(output, witnessKey)
      }
      assert.lengthOf(readFileSync(out, "utf8").trimEnd().split("\n— "), 3)
      const verified = yield* command("audit", "verify", "--key", logKey, "--checkpoint", out, "--witness", witnessKey)
      assert.match(verified.output, /witness\.example\/w1 saw the first 2 events on \d{4}-.*: all of them existed then/u)
      assert.isNull(verified.failure)
    }
  )

  it.effect(
    "does not cosign a log that is shorter than the last cosigned checkpoint or contradicts that checkpoint",
    function* () {
      const { remember, run } = yield* makeWitness
      assert.isNull((yield* run).failure)
      remember(2)
      assert.match((yield* run).failure ?? "", /The log contradicts itself: its \d+ events do not extend the 2/u)
      remember(1_000_000)
      assert.match((yield* run).failure ?? "", /but 1000000 were cosigned: events were removed/u)
    }
  )

  it.effect("rejects a response of the log that is too long, without reading all of it", function* () {
    const { runOn } = yield* makeWitness
    assert.match((yield* runOn(yield* endlessLog)).failure ?? "", /checkpoint responded with more than 65536 bytes/u)
  })

  it.effect(
    "adds a cosignature to proofs and exports; `audit verify` accepts the cosignature, and rejects a forged cosignature",
    function* () {
      const { folder, service } = yield* makeWitness
      const { headers } = yield* newAuditor()
      const proof = (yield* service.get("/v1/audit/proofs/0", { headers })).text
      const file = join(folder, "one.tlog-proof")
      const verify = command("audit", "verify", "--proof", file, "--key", logKey, "--witness", witnessKey)
      writeFileSync(file, proof)
      assert.include((yield* verify).output, "None of these checkpoints has a cosignature")
      const start = proof.indexOf("\n\n") + 2
      writeFileSync(file, proof.slice(0, start) + cosign(proof.slice(start), witness, at))
      assert.match((yield* verify).output, /on 2026-11-23T09:30:00\.000Z: all of them existed then/u)

      const directory = join(folder, "export")
      yield* command("audit", "export", "--out", directory)
      const note = readFileSync(join(directory, "checkpoint"), "utf8")
      const kept = join(folder, "kept.txt")
      writeFileSync(kept, cosign(note, witness, at))
      const options = ["--export", directory, "--key", logKey, "--checkpoint", kept, "--witness", witnessKey]
      const verifyExport = command("audit", "verify", ...options)
      const whole = yield* verifyExport
      assert.match(whole.output, /on 2026-11-23T09:30:00\.000Z: all of them existed then/u)
      writeFileSync(kept, cosign(note, { ...witness, sign: signer.sign }, at))
      const forged = yield* verifyExport
      assert.match(forged.failure ?? "", /cosignature of witness\.example\/w1 is invalid/u)
    }
  )
})
