import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Redacted } from "effect"
import * as AppConfig from "#infra/config/AppConfig.ts"
import * as NotaryKeys from "#infra/security/NotaryKeys.ts"
import { temporaryFolder } from "#test/support/Auditing.ts"
import { assert, describe, it, layer } from "#test/support/Test.ts"

/** Returns a new folder, and a function that opens the notary's record of checkpoints in the folder for the given keys. */
const makeFiles = Effect.gen(function* () {
  const dataDir = yield* temporaryFolder
  const config = yield* AppConfig.read({ DATA_DIR: dataDir })
  const ids = (numbers: ReadonlyArray<number>) => numbers.map((id) => ({ id }))
  const checkpointFiles = (signers: ReadonlyArray<number>, former: ReadonlyArray<number> = []) =>
    Effect.provideService(
      NotaryKeys.checkpointFiles({ signers: ids(signers), verifiers: ids([...signers, ...former]) }),
      AppConfig.AppConfig,
      config
    )
  return { dataDir, checkpointFiles }
})

layer(NodeServices.layer)("the notary's local record of checkpoints", (it) => {
  it.effect(
    "is stored in a file for each signing key, and is found by a replica that signs or verifies with that key",
    function* () {
      const { dataDir, checkpointFiles } = yield* makeFiles
      const { loadSeen, saveSeen } = yield* checkpointFiles([0xab])
      assert.deepStrictEqual(yield* loadSeen, [])
      yield* saveSeen("one")
      const later = yield* checkpointFiles([0xcd], [0xab])
      assert.deepStrictEqual(yield* later.loadSeen, [{ note: "one", at: join(dataDir, "notary-000000ab.checkpoint") }])
      yield* later.saveSeen("two")
      assert.deepStrictEqual(readdirSync(dataDir).toSorted(), ["notary-000000ab.checkpoint", "notary-000000cd.checkpoint"])
      assert.strictEqual(readFileSync(join(dataDir, "notary-000000ab.checkpoint"), "utf8"), "one")
      assert.deepStrictEqual(
        (yield* (yield* checkpointFiles([0xcd, 0xab])).loadSeen).map(({ note }) => note),
        ["two", "one"]
      )
    }
  )

  it.effect("is always a complete checkpoint, even with concurrent writers and readers", function* () {
    const { dataDir, checkpointFiles } = yield* makeFiles
    const note = (replica: number) => `${replica}`.repeat(20_000)
    const replicas = yield* Effect.forEach([1, 2, 3, 4], (replica) =>
      Effect.map(checkpointFiles([0xab]), ({ saveSeen }) => saveSeen(note(replica)))
    )
    yield* (yield* checkpointFiles([0xab])).saveSeen(note(1))
    const write = Effect.forEach(replicas, (saveSeen) => Effect.repeat(saveSeen, { times: 40 }), { concurrency: "unbounded" })
    const read = Effect.repeat(
      Effect.map(
        Effect.flatMap(checkpointFiles([0xab]), ({ loadSeen }) => loadSeen),
        ([seen]) => assert.include([1, 2, 3, 4].map(note), seen?.note)
      ),
      { times: 200 }
    )
    yield* Effect.all([write, read], { concurrency: "unbounded" })
    assert.deepStrictEqual(readdirSync(dataDir), ["notary-000000ab.checkpoint"])
  })

  it.effect("is stored for each of several signing keys, so that a replica with only one of these keys finds it", function* () {
    const { checkpointFiles } = yield* makeFiles
    yield* (yield* checkpointFiles([0xcd, 0xab])).saveSeen("three")
    for (const id of [0xab, 0xcd]) {
      assert.deepStrictEqual(
        (yield* (yield* checkpointFiles([id])).loadSeen).map(({ note }) => note),
        ["three"]
      )
    }
  })
})

describe("the text of the setting NOTARY_KEY", () => {
  const keysIn = (text: string) => NotaryKeys.keysIn(Redacted.make(text)).map(Redacted.value)
  const pem = "-----BEGIN PRIVATE KEY-----\nMC4C AQ==\n-----END PRIVATE KEY-----"
  const verifier = "a,b/log/0+0123abcd+AAAA"

  it("is split into keys at white space", () => {
    assert.deepStrictEqual(keysIn(" one\n"), ["one"])
    assert.deepStrictEqual(keysIn(`one two\n\t${verifier}`), ["one", "two", verifier])
    assert.deepStrictEqual(keysIn(" "), [" "])
  })

  it("may contain a PEM block between other text", () => {
    assert.deepStrictEqual(keysIn(`Bag Attributes\n friendlyName: x\r\n${pem}\n`), [pem])
    assert.deepStrictEqual(keysIn(`${pem.replace("PRIVATE", "PUBLIC").replace("PRIVATE", "PUBLIC")}\n${pem} ${verifier}`), [
      pem,
      verifier
    ])
    assert.deepStrictEqual(keysIn(`PRIVATE+KEY+log+0123abcd+AAAA ${pem}`), ["PRIVATE+KEY+log+0123abcd+AAAA", pem])
    assert.deepStrictEqual(keysIn(`"${pem}"`), [pem])
  })
})
