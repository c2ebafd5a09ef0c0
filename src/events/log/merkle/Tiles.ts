/**
 * The tree in tiles as C2SP tlog-tiles defines them (c2sp.org/tlog-tiles, version of 2026-02-06).
 *
 * A tile holds up to 256 adjacent nodes of a level that is a multiple of 8: tile (L, N) starts at node (8·L, 256·N), 32 bytes per
 * node. A partial tile has the first hashes of the full tile. The database therefore stores each tile once and appends to it. A reader
 * ignores the hashes beyond the size of its tree.
 */
import { Effect, Option, Schema } from "effect"
import type { Sha256 } from "#domain/kernel/Crypto.ts"
import { append, empty, hashLength, root, type Hash, type Node, type NodeId } from "#events/log/merkle/MerkleTree.ts"
import type { ReadNodes } from "#events/log/merkle/TreeProofs.ts"

/** Tree levels per tile. */
export const tileHeight = 8

/** Nodes in a full tile. */
export const tileWidth = 256

/** Tile `index` of a tile level. `width` is 256 for a full tile and 1 to 255 for a partial one. */
export interface Tile {
  readonly level: number
  readonly index: number
  readonly width: number
}

/** Returns the path of a tile below the log's prefix, for example `tile/0/x001/x234/067.p/8`. */
export const path = (tile: Tile): string =>
  `tile/${tile.level}/${indexPath(tile.index)}${tile.width === tileWidth ? "" : `.p/${tile.width}`}`

/** Returns the index in groups of three digits; all groups but the last have the prefix x. */
const indexPath = (index: number): string => {
  const digits = String(index)
  const groups = digits.padStart(Math.ceil(digits.length / 3) * 3, "0").match(/\d{3}/gu) ?? []
  return groups.map((group, i) => (i === groups.length - 1 ? group : `x${group}`)).join("/")
}

const pathPattern = /^tile\/(?<level>\d{1,2})\/(?<index>(?:x\d{3}\/){0,5}\d{3})(?:\.p\/(?<width>\d{1,3}))?$/u

/**
 * Parses the path of a tile. Returns none if the text is not exactly a path that `path` returns. The paths of entry bundles also
 * give none, because Vatproof serves no entry bundles.
 */
export const parsePath = (text: string): Option.Option<Tile> => {
  const { level, index, width } = pathPattern.exec(text)?.groups ?? {}
  if (level === undefined || index === undefined) return Option.none()
  const tile: Tile = {
    level: Number(level),
    index: Number(index.replace(/[x/]/gu, "")),
    width: width === undefined ? tileWidth : Number(width)
  }
  const inBounds = tile.level <= 63 && Number.isSafeInteger(tile.index) && tile.width <= tileWidth
  // Rejects superfluous zeros, empty tiles, and full tiles that are marked as partial.
  return inBounds && tile.width > 0 && path(tile) === text ? Option.some(tile) : Option.none()
}

/** Returns the number of nodes, 0 to 256, of tile `index` of a level in a log of `size` entries. */
export const widthAt = (size: number, level: number, index: number): number => {
  const nodes = Math.floor(size / tileWidth ** level)
  return Math.max(0, Math.min(tileWidth, nodes - index * tileWidth))
}

/** The growth of one tile: the hashes that new nodes append to it, and the number `offset` of hashes that it had before. */
export interface Growth {
  readonly level: number
  readonly index: number
  readonly offset: number
  readonly hashes: Uint8Array
}

/** Groups the new nodes of one `MerkleTree.append` by tile. Drops nodes of levels that tiles do not store. */
export const growths = (nodes: ReadonlyArray<Node>): ReadonlyArray<Growth> => {
  const kept = nodes.filter((node) => node.level % tileHeight === 0)
  const tiles = Map.groupBy(kept, (node) => `${node.level}/${Math.floor(node.index / tileWidth)}`)
  return Array.from(tiles.values()).flatMap((members) => {
    const [first] = members
    if (first === undefined) return []
    const index = Math.floor(first.index / tileWidth)
    const hashes = concatenated(members.map(({ hash }) => hash))
    return [{ level: first.level / tileHeight, index, offset: first.index - index * tileWidth, hashes }]
  })
}

/** Merges the growths of consecutive appends into one growth per tile, as if one append had added all leaves. */
export const joined = (parts: ReadonlyArray<Growth>): ReadonlyArray<Growth> => {
  const tiles = Map.groupBy(parts, ({ index, level }) => `${level}/${index}`)
  return Array.from(tiles.values()).flatMap((ofTile) => {
    const [first] = ofTile
    if (first === undefined) return []
    return [{ ...first, hashes: concatenated(ofTile.map(({ hashes }) => hashes)) }]
  })
}

const concatenated = (parts: ReadonlyArray<Uint8Array>): Uint8Array => {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0))
  let next = 0
  for (const part of parts) {
    whole.set(part, next)
    next += part.length
  }
  return whole
}

/** Returns the content of each requested tile, in the same order: at least its first `width` hashes. */
export type ReadTiles<E = never, R = never> = (tiles: ReadonlyArray<Tile>) => Effect.Effect<ReadonlyArray<Uint8Array>, E, R>

/** A stored tile is missing, or has fewer hashes than a log of `size` entries requires. */
export class IncompleteTile extends Schema.TaggedError<IncompleteTile>()("IncompleteTile", {
  level: Schema.Int,
  index: Schema.Int,
  size: Schema.Int
}) {
  override get message() {
    return `Tile ${this.level}/${this.index} is incomplete for a log of ${this.size} entries`
  }
}

/** Returns the tile from which a node is computed: the node is the root over `span` hashes of the tile, starting at hash `offset`. */
const locationOf = ({ level, index }: NodeId) => {
  const tileLevel = Math.floor(level / tileHeight)
  const span = 2 ** (level % tileHeight)
  const tileIndex = Math.floor((index * span) / tileWidth)
  return { level: tileLevel, index: tileIndex, offset: index * span - tileIndex * tileWidth, span }
}

/** Creates a function that reads nodes of a tree of `size` leaves from its tiles. It reads each tile once per call. */
export const readNodes =
  <E, R>(sha256: Sha256, size: number, readTiles: ReadTiles<E, R>): ReadNodes<E | IncompleteTile, R> =>
  (nodes) => {
    const locations = nodes.map(locationOf)
    const tiles = new Map(
      locations.map(({ level, index }): [string, Tile] => [
        `${level}/${index}`,
        { level, index, width: widthAt(size, level, index) }
      ])
    )
    return Effect.flatMap(readTiles(Array.from(tiles.values())), (contents) => {
      const byTile = new Map(Array.from(tiles.keys(), (key, i) => [key, contents[i]]))
      return Effect.forEach(locations, ({ level, index, offset, span }) => {
        const part = byTile.get(`${level}/${index}`)?.subarray(offset * hashLength, (offset + span) * hashLength)
        return part?.length === span * hashLength
          ? Effect.succeed(root(sha256, append(sha256, empty, hashesIn(part)).tree))
          : Effect.fail(new IncompleteTile({ level, index, size }))
      })
    })
  }

/** Splits the content of a tile into hashes. */
export const hashesIn = (content: Uint8Array): ReadonlyArray<Hash> =>
  Array.from({ length: Math.floor(content.length / hashLength) }, (_, i) =>
    content.subarray(i * hashLength, (i + 1) * hashLength)
  )
