import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import {
  append,
  empty,
  equalHashes,
  leafHash,
  nodesOf,
  restore,
  root,
  type Node,
  type Tree
} from "#events/log/merkle/MerkleTree.ts"
import { hex, hexes, leavesOf, logOf, sha256, upTo } from "#test/support/log/Logs.ts"
import { naiveTree } from "#test/support/log/NaiveTree.ts"

/** Test vectors of the reference implementation of Certificate Transparency. */
const referenceLeaves = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
const referenceRoots = [
  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
  "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
  "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
  "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
  "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
  "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
  "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
  "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
  "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"
]

const maxSize = 130
const leaves = leavesOf(maxSize)
const { hashes } = logOf(leaves)
const naive = naiveTree(leaves)

describe("the Merkle tree", () => {
  it("has the roots of the Certificate Transparency reference tree", () => {
    const reference = referenceLeaves.map((leaf) => Uint8Array.from(Buffer.from(leaf, "hex")))
    const roots = upTo(9).map((size) => hex(root(sha256, logOf(reference.slice(0, size)).tree)))
    assert.deepStrictEqual(roots, referenceRoots)
  })

  it("has the same hash for a leaf as text and as its UTF-8 bytes", () => {
    const text = "Bestätigung € 😀 \u0000"
    assert.strictEqual(hex(leafHash(sha256, text)), hex(leafHash(sha256, new TextEncoder().encode(text))))
    assert.strictEqual(hex(leafHash(sha256, text)), hex(sha256(Buffer.concat([Buffer.of(0), Buffer.from(text)]))))
  })

  it("has the root that RFC 6962 defines, for every size up to 130", () => {
    let tree: Tree = empty
    for (const size of upTo(maxSize + 1)) {
      assert.strictEqual(tree.size, size)
      assert.strictEqual(hex(root(sha256, tree)), hex(naive.root(0, size)))
      tree = append(sha256, tree, hashes.slice(size, size + 1)).tree
    }
  })

  it("reports each complete subtree once, with its hash, while it grows", () => {
    const { nodes } = logOf(leaves)
    const ids = nodes.map(({ level, index }) => `${level}/${index}`)
    assert.strictEqual(new Set(ids).size, nodes.length)
    // A log of n leaves has n + n/2 + n/4 + … complete subtrees.
    assert.strictEqual(
      nodes.length,
      upTo(8).reduce((sum, level) => sum + Math.floor(maxSize / 2 ** level), 0)
    )
    for (const { level, index, hash } of nodes) {
      assert.strictEqual(hex(hash), hex(naive.root(index * 2 ** level, (index + 1) * 2 ** level)))
    }
  })

  it("covers every range of leaves with the fewest complete subtrees", () => {
    for (const to of upTo(65)) {
      for (const from of upTo(to)) {
        const nodes = nodesOf({ from, to })
        const covered = nodes.flatMap(({ level, index }) => upTo(2 ** level).map((i) => index * 2 ** level + i))
        assert.deepStrictEqual(
          covered,
          upTo(to - from).map((i) => from + i)
        )
        const mergeable = nodes.some(
          ({ level, index }, i) => index % 2 === 0 && nodes[i + 1]?.level === level && nodes[i + 1]?.index === index + 1
        )
        assert.isFalse(mergeable)
      }
    }
  })

  it("has the correct complete subtrees with more than 2^32 leaves", () => {
    const size = 2 ** 52 + 2 ** 33 + 5
    assert.deepStrictEqual(
      nodesOf({ from: 0, to: size }).map(({ level }) => level),
      [52, 33, 2, 0]
    )
    const tree = restore(size, hashes.slice(0, 4))
    const { tree: grown, nodes } = append(sha256, tree, hashes.slice(4, 5))
    assert.deepStrictEqual(
      nodes.map(({ level, index }) => [level, index]),
      [
        [0, size],
        [1, (size - 1) / 2]
      ]
    )
    assert.strictEqual(grown.size, size + 1)
  })

  it.prop(
    "has the same nodes in however many steps the leaves are added, even with a restart between two steps",
    [Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 40 }))).check(Schema.isMaxLength(12))],
    ([batches]) => {
      const count = batches.reduce((sum, length) => sum + length, 0)
      const all = logOf(leavesOf(count, 1))
      let tree: Tree = empty
      const nodes: Array<Node> = []
      for (const length of batches) {
        const restarted = restore(
          tree.size,
          tree.peaks.map((peak) => peak.hash)
        )
        const grown = append(sha256, restarted, all.hashes.slice(tree.size, tree.size + length))
        nodes.push(...grown.nodes)
        tree = grown.tree
      }
      assert.deepStrictEqual(tree, all.tree)
      assert.deepStrictEqual(hexes(nodes.map(({ hash }) => hash)), hexes(all.nodes.map(({ hash }) => hash)))
    }
  )

  it("treats two hashes as equal only if both have the same 32 bytes", () => {
    const hash = sha256("a")
    assert.isTrue(equalHashes(hash, Uint8Array.from(hash)))
    assert.isFalse(equalHashes(hash, sha256("b")))
    assert.isFalse(equalHashes(new Uint8Array(), new Uint8Array()))
    assert.isFalse(equalHashes(hash, hash.subarray(1)))
  })
})
