import { Effect, Option, Schema } from "effect"
import { append, empty, type Node, type Tree } from "#events/log/merkle/MerkleTree.ts"
import {
  growths,
  hashesIn,
  IncompleteTile,
  joined,
  parsePath,
  path,
  readNodes,
  tileWidth,
  widthAt,
  type ReadTiles,
  type Tile
} from "#events/log/merkle/Tiles.ts"
import { proveInclusion } from "#events/log/merkle/TreeProofs.ts"
import { assert, describe, it } from "#test/support/Test.ts"
import { hex, hexes, leavesOf, logOf, readFrom, sha256, upTo } from "#test/support/log/Logs.ts"

/** Appends new hashes to the stored tiles, as the database does. */
const storeTiles = (tiles: Map<string, Uint8Array>, grown: ReturnType<typeof growths>) => {
  for (const { level, index, offset, hashes } of grown) {
    const before = tiles.get(`${level}/${index}`) ?? new Uint8Array()
    assert.strictEqual(before.length, offset * 32)
    tiles.set(`${level}/${index}`, Buffer.concat([before, hashes]))
  }
}

const tilesFrom =
  (tiles: ReadonlyMap<string, Uint8Array>): ReadTiles =>
  (asked) =>
    Effect.succeed(asked.map(({ level, index }) => tiles.get(`${level}/${index}`) ?? new Uint8Array()))

/** Builds a log of 70,000 entries in batches, with arbitrary hashes. */
const bigLog = () => {
  const tiles = new Map<string, Uint8Array>()
  const nodes: Array<Node> = []
  let tree: Tree = empty
  while (tree.size < 70_000) {
    const length = Math.min(331, 70_000 - tree.size)
    const hashes = upTo(length).map((i) => new Uint8Array(32).fill((tree.size + i) % 251))
    const grown = append(sha256, tree, hashes)
    storeTiles(tiles, growths(grown.nodes))
    nodes.push(...grown.nodes)
    tree = grown.tree
  }
  return { tiles, nodes, tree }
}

it("tiles have the same hashes after one append of leaves as after several appends", () => {
  const hashes = upTo(1_500).map((i) => new Uint8Array(32).fill(i % 251))
  const start = append(sha256, empty, hashes.slice(0, 300)).tree
  const whole = append(sha256, start, hashes.slice(300))
  const first = append(sha256, start, hashes.slice(300, 1_000))
  const second = append(sha256, first.tree, hashes.slice(1_000))
  const byTile = (grown: ReturnType<typeof growths>) =>
    grown.toSorted((one, other) => one.level - other.level || one.index - other.index)
  assert.deepStrictEqual(byTile(joined([...growths(first.nodes), ...growths(second.nodes)])), byTile(growths(whole.nodes)))
  assert.deepStrictEqual(second.tree, whole.tree)
})

describe("the parser of tile paths", () => {
  const paths: ReadonlyArray<readonly [string, Tile]> = [
    ["tile/0/000", { level: 0, index: 0, width: 256 }],
    ["tile/0/x001/x234/067", { level: 0, index: 1_234_067, width: 256 }],
    ["tile/0/x001/x234/067.p/8", { level: 0, index: 1_234_067, width: 8 }],
    ["tile/63/999.p/255", { level: 63, index: 999, width: 255 }],
    ["tile/1/x001/000", { level: 1, index: 1000, width: 256 }],
    ["tile/0/x009/x007/x199/x254/x740/991", { level: 0, index: Number.MAX_SAFE_INTEGER, width: 256 }]
  ]

  it("parses the paths that tlog-tiles specifies, and formats them back to the same text", () => {
    for (const [text, tile] of paths) {
      assert.strictEqual(path(tile), text)
      assert.deepStrictEqual(parsePath(text), Option.some(tile))
    }
  })

  it("rejects a path that differs from the form in tlog-tiles", () => {
    const others = [
      "",
      "tile/0/0",
      "tile/0/0000",
      "tile/00/000",
      "tile/64/000",
      "tile/-1/000",
      "tile/0/x000/001",
      "tile/0/001/x001",
      "tile/0/x001/x001",
      "tile/0/001/001",
      "tile/0/000.p/0",
      "tile/0/000.p/08",
      "tile/0/000.p/256",
      "tile/0/000.p/",
      "tile/0/000/",
      "/tile/0/000",
      "tile/0/000\n",
      "tile/8/0/000",
      "tile/entries/000",
      "tile/data/000",
      "tile/0/x009/x007/x199/x254/x740/992",
      "tile/0/x999/x999/x999/x999/x999/999",
      "tile/0/００１"
    ]
    for (const text of others) assert.deepStrictEqual(parsePath(text), Option.none(), text)
  })

  it.prop(
    "parses a formatted path to the same tile",
    [
      Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 63 })),
      Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 256 }))
    ],
    ([level, index, width]) => {
      assert.deepStrictEqual(parsePath(path({ level, index, width })), Option.some({ level, index, width }))
    }
  )
})

describe("a log in tiles", () => {
  it("has as many full and partial tiles as the examples in tlog-tiles, for 70,000 and for 256 entries", () => {
    const widths = (size: number, level: number) => {
      const all = upTo(300).map((index) => widthAt(size, level, index))
      return {
        full: all.filter((width) => width === tileWidth).length,
        partial: all.filter((width) => width > 0 && width < tileWidth)
      }
    }
    assert.deepStrictEqual(widths(70_000, 0), { full: 273, partial: [112] })
    assert.deepStrictEqual(widths(70_000, 1), { full: 1, partial: [17] })
    assert.deepStrictEqual(widths(70_000, 2), { full: 0, partial: [1] })
    assert.deepStrictEqual(widths(70_000, 3), { full: 0, partial: [] })
    assert.deepStrictEqual(widths(256, 0), { full: 1, partial: [] })
    assert.deepStrictEqual(widths(256, 1), { full: 0, partial: [1] })
    assert.strictEqual(widthAt(2 ** 52, 63, 0), 0)
  })

  it.effect("creates the same proofs from tiles that were written in several steps as from all hashes", function* () {
    const { tiles, nodes, tree } = bigLog()
    assert.strictEqual(tiles.size, 273 + 1 + 2 + 1)
    for (const [key, content] of tiles) {
      const [level, index] = key.split("/").map(Number)
      assert.strictEqual(content.length / 32, widthAt(tree.size, level ?? 0, index ?? 0))
    }
    assert.deepStrictEqual(
      hexes(hashesIn(tiles.get("2/0") ?? new Uint8Array())),
      nodes.filter(({ level }) => level === 16).map(({ hash }) => hex(hash))
    )
    const stored = readFrom(nodes)
    for (const size of [1, 2, 255, 256, 257, 65_535, 65_536, 65_537, 69_999, tree.size]) {
      const tiled = readNodes(sha256, size, tilesFrom(tiles))
      for (const index of new Set([0, Math.floor(size / 3), Math.floor(size / 2), size - 1])) {
        const inclusion = { index, size }
        assert.deepStrictEqual(
          hexes(yield* proveInclusion(sha256, tiled, inclusion)),
          hexes(yield* proveInclusion(sha256, stored, inclusion))
        )
      }
    }
  })

  it.effect(
    "requests each tile only once per proof, with the width that the tile has in a log of the proof's size",
    function* () {
      const leaves = leavesOf(600)
      const log = logOf(leaves)
      const tiles = new Map<string, Uint8Array>()
      storeTiles(tiles, growths(log.nodes))
      const asked: Array<ReadonlyArray<Tile>> = []
      const reader = readNodes(sha256, 520, (question) => {
        asked.push(question)
        return tilesFrom(tiles)(question)
      })
      yield* proveInclusion(sha256, reader, { index: 3, size: 520 })
      assert.deepStrictEqual(asked, [
        [
          { level: 0, index: 0, width: 256 },
          { level: 1, index: 0, width: 2 },
          { level: 0, index: 2, width: 8 }
        ]
      ])
    }
  )

  it.effect("fails with an error that names the incomplete tile if hashes of a proof are missing in a tile", function* () {
    const log = logOf(leavesOf(10))
    const tiles = new Map<string, Uint8Array>()
    storeTiles(tiles, growths(log.nodes))
    tiles.set("0/0", tiles.get("0/0")?.subarray(0, 9 * 32) ?? new Uint8Array())
    const reader = readNodes(sha256, 10, tilesFrom(tiles))
    const failure = yield* Effect.flip(proveInclusion(sha256, reader, { index: 0, size: 10 }))
    assert.instanceOf(failure, IncompleteTile)
    assert.strictEqual(failure.message, "Tile 0/0 is incomplete for a log of 10 entries")
  })
})
