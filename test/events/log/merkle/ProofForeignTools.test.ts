/**
 * Verifies logs with independent tools: Go's packages for transparency logs, and OpenSSL. Tests are skipped with a message if a tool is
 * not installed.
 */
import { generateKeyPairSync } from "node:crypto"
import { beforeEach } from "@effect/vitest"
import { DateTime, Effect, Option, Redacted, Result } from "effect"
import { sign } from "#events/log/merkle/Checkpoint.ts"
import { root } from "#events/log/merkle/MerkleTree.ts"
import { formatVerifier, parseSigner } from "#events/log/merkle/NoteKeys.ts"
import { format } from "#events/log/merkle/Proof.ts"
import { parse, sign as signNote } from "#events/log/merkle/SignedNote.ts"
import { growths, path, widthAt } from "#events/log/merkle/Tiles.ts"
import { proveInclusion } from "#events/log/merkle/TreeProofs.ts"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"
import { assert, describe, it } from "#test/support/Test.ts"
import { secretOf, signerOf } from "#test/support/log/Keys.ts"
import { asWitness, cosign, witnessOf } from "#test/support/log/Witness.ts"
import { askGo, base64, hasGo } from "#test/support/GoTools.ts"
import { hasOpenssl, opensslVerifies } from "#test/support/OpenSsl.ts"
import { leavesOf, logOf, readFrom, sha256, upTo } from "#test/support/log/Logs.ts"

const origin = "vatproof.example/log0"
const signer = signerOf(origin)
const witness = witnessOf("witness.example/w1")
const cosignedAt = DateTime.makeUnsafe("2026-11-23T09:30:00Z")
const logSize = 600

const leaves = leavesOf(logSize, 9)
const log = logOf(leaves)
const readNodes = readFrom(log.nodes)

const checkpointAt = (size: number) => {
  const { tree } = logOf(leaves.slice(0, size))
  return Result.getOrThrow(sign({ origin, size, root: root(sha256, tree), extensions: [] }, [signer]))
}

const proofAt = Effect.fnUntraced(function* (index: number, size: number) {
  const hashes = yield* proveInclusion(sha256, readNodes, { index, size })
  const extra = index % 2 === 0 ? Option.none() : Option.some(Uint8Array.of(1, 2, 3))
  return {
    leaf: base64(leaves[index] ?? new Uint8Array()),
    text: format({ index, hashes, extra, checkpoint: checkpointAt(size) })
  }
})

describe("Go's sumdb", () => {
  beforeEach((context) => context.skip(!hasGo, "skipped: Go or Debian's golang-golang-x-mod-dev is not installed"))

  it.effect(
    "creates the same signed notes, roots, proofs and tiles as the service, and accepts those of the service",
    function* () {
      const sizes = [1, 2, 3, 7, 8, 33, 100]
      const notes = [checkpointAt(0), checkpointAt(logSize), Result.getOrThrow(signNote("a\n\nb € 😀\n", [signer]))]
      const cosigned = cosign(checkpointAt(logSize), witness, cosignedAt)
      const tiles = new Map(
        growths(log.nodes).map((tile) => {
          const width = widthAt(logSize, tile.level, tile.index)
          return [path({ ...tile, width }), base64(tile.hashes)]
        })
      )
      const asked = [0, 1, 255, 256, 511, 512, 598, 599]
      const answer = yield* askGo({
        secret: Redacted.value(secretOf(origin)),
        verifier: formatVerifier(signer),
        notes: [...notes, cosigned],
        leaves: leaves.map(base64),
        sizes,
        tiles: Object.fromEntries(tiles),
        proofs: [
          ...(yield* Effect.forEach(asked, (index) => proofAt(index, logSize))),
          yield* proofAt(7, logSize).pipe(Effect.map(({ leaf, text }) => ({ leaf, text: cosign(text, witness, cosignedAt) })))
        ],
        origin
      })
      assert.deepStrictEqual(
        answer.opened,
        [...notes, cosigned].map((note) => Result.getOrThrow(parse(note)).text)
      )
      assert.deepStrictEqual(answer.signed, [...notes, checkpointAt(logSize)])
      assert.deepStrictEqual(
        answer.roots,
        upTo(logSize).map((i) => base64(root(sha256, logOf(leaves.slice(0, i + 1)).tree)))
      )
      for (const size of sizes) {
        for (const index of upTo(size)) {
          const inclusion = yield* proveInclusion(sha256, readNodes, { index, size })
          assert.deepStrictEqual(answer.inclusion[`${index} in ${size}`], inclusion.map(base64))
        }
      }
      // Go also lists every width that a partial tile had while the log grew.
      const differing = Array.from(tiles.keys()).filter((path) => answer.tiles[path] !== tiles.get(path))
      assert.deepStrictEqual({ tiles: tiles.size, differing }, { tiles: 4, differing: [] })
      assert.strictEqual(answer.read, logSize)
      assert.deepStrictEqual(answer.proved, [...asked, 7])
    },
    120_000
  )
})

describe("OpenSSL", () => {
  beforeEach((context) => context.skip(!hasOpenssl, "skipped: openssl is not installed"))

  it.effect("accepts the log's signature over the text of a checkpoint, and a witness's signature over text and time", () =>
    Effect.sync(() => {
      const { privateKey } = generateKeyPairSync("ed25519")
      const secret = Redacted.make(String(privateKey.export({ type: "pkcs8", format: "pem" })))
      const signer = Result.getOrThrow(parseSigner(pureCrypto, origin, secret))
      const checkpoint = { origin, size: logSize, root: root(sha256, log.tree), extensions: [] }
      const { text, signatures } = Result.getOrThrow(parse(Result.getOrThrow(sign(checkpoint, [signer]))))
      const verify = (message: string, bytes = signatures[0]?.bytes) =>
        opensslVerifies(signer.publicKey, message, bytes ?? new Uint8Array())
      assert.isTrue(verify(text))
      assert.isFalse(verify(text.replace("600", "601")))

      const cosigned = cosign(Result.getOrThrow(sign(checkpoint, [signer])), asWitness(signer), cosignedAt)
      const cosignature = Result.getOrThrow(parse(cosigned)).signatures[1]?.bytes.subarray(8)
      const seconds = DateTime.toEpochMillis(cosignedAt) / 1000
      assert.isTrue(verify(`cosignature/v1\ntime ${seconds}\n${text}`, cosignature))
      assert.isFalse(verify(`cosignature/v1\ntime ${seconds + 1}\n${text}`, cosignature))
    })
  )
})
