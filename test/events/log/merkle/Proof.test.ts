import { Effect, Option, Result } from "effect"
import { sign } from "#events/log/merkle/Checkpoint.ts"
import { root } from "#events/log/merkle/MerkleTree.ts"
import { format, parse, ProofRefused, verify, type Proof } from "#events/log/merkle/Proof.ts"
import { proveInclusion } from "#events/log/merkle/TreeProofs.ts"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"
import { assert, describe, it } from "#test/support/Test.ts"
import { refusalOf, signerOf } from "#test/support/log/Keys.ts"
import { flipped, leavesOf, logOf, readFrom, sha256, upTo } from "#test/support/log/Logs.ts"

const origin = "vatproof.example/log0"
const signer = signerOf(origin)
const leaves = leavesOf(73)
const log = logOf(leaves)
const checkpoint = { origin, size: 73, root: root(sha256, log.tree), extensions: [] }
const note = Result.getOrThrow(sign(checkpoint, [signer]))

const leafAt = (index: number) => leaves[index] ?? new Uint8Array()
const claimFor = (index: number) => ({ leaf: leafAt(index), origin, verifiers: [signer] })

const proofOf = Effect.fnUntraced(function* (index: number, extra: Option.Option<Uint8Array> = Option.none()) {
  const hashes = yield* proveInclusion(sha256, readFrom(log.nodes), { index, size: 73 })
  return { index, hashes, extra, checkpoint: note } satisfies Proof
})

describe("the tlog-proof format", () => {
  it.effect("writes a proof in the layout that tlog-proof specifies", function* () {
    const proof = yield* proofOf(0, Option.some(new TextEncoder().encode("extra")))
    const lines = format(proof).split("\n")
    assert.deepStrictEqual(lines.slice(0, 3), ["c2sp.org/tlog-proof@v1", "extra ZXh0cmE=", "index 0"])
    const hashes = proof.hashes.map((hash) => Buffer.from(hash).toString("base64"))
    assert.deepStrictEqual(lines.slice(3), [...hashes, "", ...note.split("\n")])
  })

  it.effect("verifies a proof of each entry of a log, and returns the entry's position and the checkpoint", function* () {
    for (const index of upTo(73)) {
      const extra = index % 2 === 0 ? Option.none() : Option.some(Uint8Array.of(index))
      const proof = yield* proofOf(index, extra)
      assert.deepStrictEqual(Result.getOrThrow(parse(format(proof))), proof)
      const verified = Result.getOrThrow(verify(pureCrypto, format(proof), claimFor(index)))
      assert.deepStrictEqual(verified, { index, checkpoint })
    }
  })

  it("accepts a proof without hashes if the log has only one entry", () => {
    const only = logOf([leafAt(5)])
    const single = Result.getOrThrow(sign({ origin, size: 1, root: root(sha256, only.tree), extensions: [] }, [signer]))
    const text = `c2sp.org/tlog-proof@v1\nindex 0\n\n${single}`
    assert.strictEqual(format(Result.getOrThrow(parse(text))), text)
    assert.isTrue(Result.isSuccess(verify(pureCrypto, text, claimFor(5))))
  })

  it.effect("rejects a proof of another entry, of another log, or signed with an unknown key", function* () {
    const text = format(yield* proofOf(10))
    const wrong = refusalOf(verify(pureCrypto, text, claimFor(11)))
    assert.instanceOf(wrong, ProofRefused)
    assert.strictEqual(wrong.reason, "not_included")
    assert.strictEqual(refusalOf(verify(pureCrypto, text, { ...claimFor(10), origin: "other" })).reason, "other_origin")
    const stranger = { ...claimFor(10), verifiers: [signerOf(origin, "another")] }
    assert.strictEqual(refusalOf(verify(pureCrypto, text, stranger)).reason, "unsigned")
  })

  it.effect("rejects a proof if any bit of the proof or of the entry is changed", function* () {
    const text = format(yield* proofOf(40))
    const bytes = Buffer.from(text)
    // Changes only the bits before the empty line. Checkpoint.test.ts changes the bits of the checkpoint, which follows that line.
    const survivors = upTo(text.indexOf("\n\n") * 8).filter((bit) =>
      Result.isSuccess(verify(pureCrypto, new TextDecoder().decode(flipped(bytes, bit)), claimFor(40)))
    )
    assert.deepStrictEqual(survivors, [])
    const leaf = leafAt(40)
    assert.isAbove(leaf.length, 0)
    const lies = upTo(leaf.length * 8).map((bit) => ({ ...claimFor(40), leaf: flipped(leaf, bit) }))
    assert.isFalse(lies.some((lie) => Result.isSuccess(verify(pureCrypto, text, lie))))
  })

  it.effect("rejects text that differs from the form in tlog-proof", function* () {
    const text = format(yield* proofOf(72))
    const hash = text.split("\n")[2] ?? ""
    const others = [
      "",
      text.replace("@v1", "@v2"),
      ` ${text}`,
      `\ufeff${text}`,
      text.replaceAll("\n", "\r\n"),
      text.replace("index 72\n", ""),
      text.replace("index 72", "index 072"),
      text.replace("index 72", "index +72"),
      text.replace("index 72", "index  72"),
      text.replace("index 72", "index 72 "),
      text.replace("index 72", "Index 72"),
      text.replace("index 72", "index 9007199254740992"),
      text.replace("index 72", "extra \nindex 72"),
      text.replace("index 72", "extra YQ\nindex 72"),
      text.replace("index 72", "extra YR==\nindex 72"),
      text.replace("index 72", "extra YQ==\nextra YQ==\nindex 72"),
      text.replace("index 72", "index 72\nextra YQ=="),
      text.replace(hash, `${hash}=`),
      text.replace(hash, hash.slice(4)),
      text.replace(hash, Array.from({ length: 54 }, () => hash).join("\n")),
      text.slice(0, text.indexOf("\n\n"))
    ]
    for (const other of others) {
      const refusal = refusalOf(parse(other))
      assert.strictEqual(refusal.reason, "malformed", JSON.stringify(other))
    }
    assert.isTrue(Result.isSuccess(parse(text)))
  })
})
