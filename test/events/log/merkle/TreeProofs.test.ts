import { Effect, Exit, Result, Schema } from "effect"
import { leafHash, root } from "#events/log/merkle/MerkleTree.ts"
import { inclusionRanges, OutsideTree, proveInclusion, verifyInclusion } from "#events/log/merkle/TreeProofs.ts"
import { assert, describe, it } from "#test/support/Test.ts"
import { flipped, hex, hexes, leavesOf, logOf, readFrom, sha256, upTo } from "#test/support/log/Logs.ts"
import { naiveTree } from "#test/support/log/NaiveTree.ts"

const maxSize = 130
const leaves = leavesOf(maxSize)
const { hashes, nodes } = logOf(leaves)
const readNodes = readFrom(nodes)
const naive = naiveTree(leaves)
const roots = upTo(maxSize + 1).map((size) => root(sha256, logOf(leaves.slice(0, size)).tree))
const rootAt = (size: number) => roots[size] ?? new Uint8Array()
const hashAt = (index: number) => hashes[index] ?? new Uint8Array()

/** All variants of a proof with one flipped bit. */
const tampered = (proof: ReadonlyArray<Uint8Array>): ReadonlyArray<ReadonlyArray<Uint8Array>> =>
  proof.flatMap((hash, at) => upTo(256).map((bit) => proof.with(at, flipped(hash, bit))))

/** All numbers that differ from `number` in one of 53 bits. */
const neighbours = (number: number) =>
  upTo(53).map((bit) => number + (Math.floor(number / 2 ** bit) % 2 === 0 ? 2 ** bit : -(2 ** bit)))

describe("the creation and verification of Merkle proofs", () => {
  it.effect("creates valid inclusion proofs that equal those of RFC 6962, at every size up to 130", function* () {
    for (const size of upTo(maxSize + 1)) {
      for (const index of upTo(size)) {
        const proof = yield* proveInclusion(sha256, readNodes, { index, size })
        assert.deepStrictEqual(hexes(proof), hexes(naive.inclusion(index, size)))
        const claim = { index, size, root: rootAt(size), leafHash: hashAt(index), proof }
        assert.isTrue(verifyInclusion(sha256, claim))
        assert.isFalse(verifyInclusion(sha256, { ...claim, leafHash: hashAt((index + 1) % maxSize) }))
        assert.isFalse(verifyInclusion(sha256, { ...claim, index: index + 1 }))
        assert.isFalse(verifyInclusion(sha256, { ...claim, proof: [...proof, hashAt(0)] }))
        if (proof.length > 0) assert.isFalse(verifyInclusion(sha256, { ...claim, proof: proof.slice(1) }))
      }
    }
  })

  it.effect("requests all hashes of a proof in one call", function* () {
    let calls = 0
    const counting: typeof readNodes = (asked) => {
      calls += 1
      return readNodes(asked)
    }
    yield* proveInclusion(sha256, counting, { index: 37, size: 65 })
    assert.strictEqual(calls, 1)
  })

  it.effect("creates no proof if the store lacks a hash", function* () {
    const lossy = readFrom(nodes.slice(1))
    assert.isTrue(Exit.hasDies(yield* Effect.exit(proveInclusion(sha256, lossy, { index: 1, size: 2 }))))
  })

  it.effect("creates no proof for a position or a size outside of the tree", function* () {
    const missing = yield* Effect.flip(proveInclusion(sha256, readNodes, { index: maxSize, size: maxSize }))
    assert.instanceOf(missing, OutsideTree)
    assert.strictEqual(missing.message, "A log of 130 entries has no position 130")
  })

  it("rejects positions and sizes that are negative, fractional or too large", () => {
    for (const odd of [-1, 0.5, Number.NaN, Infinity, 2 ** 53]) {
      assert.isTrue(Result.isFailure(inclusionRanges(odd, 2 ** 53 - 1)))
      assert.isTrue(Result.isFailure(inclusionRanges(0, odd)))
      const hash = hashAt(0)
      assert.isFalse(verifyInclusion(sha256, { index: odd, size: 2, root: hash, leafHash: hash, proof: [hash] }))
      assert.isFalse(verifyInclusion(sha256, { index: 0, size: odd, root: hash, leafHash: hash, proof: [] }))
    }
  })

  it("needs at most 53 hashes in the largest tree", () => {
    const largest = Number.MAX_SAFE_INTEGER
    const lengths = [0, largest - 1, 2 ** 52 - 1].map((index) => Result.getOrThrow(inclusionRanges(index, largest)).length)
    assert.isTrue(lengths.every((length) => length > 0 && length <= 53))
  })

  it("rejects an inclusion proof with a hash of a wrong length", () => {
    const leaf = leafHash(sha256, "a")
    assert.isTrue(verifyInclusion(sha256, { index: 0, size: 1, root: leaf, leafHash: leaf, proof: [] }))
    const short = leaf.subarray(1)
    assert.isFalse(verifyInclusion(sha256, { index: 0, size: 1, root: short, leafHash: short, proof: [] }))
    assert.isFalse(verifyInclusion(sha256, { index: 0, size: 2, root: leaf, leafHash: leaf, proof: [short] }))
  })
})

const size = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 300 }))
const seed = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 }))

describe("in a random log", () => {
  it.effect("an inclusion proof is also valid at the position of an equal sibling leaf", function* () {
    const log = logOf([new Uint8Array(), new Uint8Array()])
    const proof = yield* proveInclusion(sha256, readFrom(log.nodes), { index: 0, size: 2 })
    const claim = { size: 2, root: root(sha256, log.tree), leafHash: leafHash(sha256, new Uint8Array()), proof }
    assert.isTrue(verifyInclusion(sha256, { ...claim, index: 0 }) && verifyInclusion(sha256, { ...claim, index: 1 }))
  })

  it.effect.prop(
    "an inclusion proof is invalid if any bit of the leaf, the proof, the root or the index is changed",
    [size, seed],
    ([size, seed]) =>
      Effect.gen(function* () {
        const leaves = leavesOf(size, seed)
        const log = logOf(leaves)
        const index = seed % size
        const leaf = leaves[index] ?? new Uint8Array()
        const proof = yield* proveInclusion(sha256, readFrom(log.nodes), { index, size })
        const claim = { index, size, root: root(sha256, log.tree), leafHash: leafHash(sha256, leaf), proof }
        assert.isTrue(verifyInclusion(sha256, claim))
        const lies = [
          ...upTo(leaf.length * 8).map((bit) => ({ ...claim, leafHash: leafHash(sha256, flipped(leaf, bit)) })),
          ...upTo(256).map((bit) => ({ ...claim, root: flipped(claim.root, bit) })),
          ...tampered(proof).map((proof) => ({ ...claim, proof })),
          // The proofs of two equal sibling leaves are valid at both positions.
          ...neighbours(index)
            .filter((other) => other >= size || hex(leaves[other] ?? new Uint8Array()) !== hex(leaf))
            .map((index) => ({ ...claim, index }))
        ]
        assert.isFalse(lies.some((lie) => verifyInclusion(sha256, lie)))
        // A proof is also valid at other sizes with the same path to the leaf. The checkpoint determines the size.
        for (const other of neighbours(size)) {
          const same = Result.match(inclusionRanges(index, other), {
            onFailure: () => false,
            onSuccess: (ranges) => sides(index, ranges) === sides(index, Result.getOrThrow(inclusionRanges(index, size)))
          })
          assert.strictEqual(verifyInclusion(sha256, { ...claim, size: other }), same)
        }
      }),
    { arbitrary: { runs: 25 } }
  )
})

/** Returns the side of each sibling in a proof, from the leaf up. */
const sides = (index: number, ranges: ReadonlyArray<{ readonly from: number }>) =>
  ranges.map(({ from }) => (from > index ? "right" : "left")).join()
