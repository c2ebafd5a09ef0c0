/**
 * The tree cut into tiles as C2SP tlog-tiles lays down (c2sp.org/tlog-tiles, version of 2026-02-06).
 *
 * A tile holds up to 256 neighbouring nodes of one level that is a multiple of 8: tile (L, N) has the nodes (8·L, 256·N)
 * onwards, 32 bytes each. A partial tile is the beginning of the full one, so a store keeps each tile once, lets it grow
 * at its end, and cuts.
 */
import { Effect, Option, Result, Schema } from "effect"
import type { Sha256 } from "#domain/kernel/Crypto.ts"
import { maxLeafLength } from "#events/merkle/EventLeaf.ts"
import { append, empty, hashLength, root, type Hash, type Node, type NodeId } from "#events/merkle/MerkleTree.ts"
import type { ReadNodes } from "#events/merkle/TreeProofs.ts"

/** Levels of the tree in one tile. */
export const tileHeight = 8

/** Nodes in a full tile, and entries in a full bundle. */
export const tileWidth = 256

/** Tile `index` of a level of tiles, or of the entry bundles. `width` is 256 in a full tile and 1 to 255 in a partial one. */
export interface Tile {
  readonly level: number | "entries"
  readonly index: number
  readonly width: number
}

/** A tile of hashes rather than of entries. */
export interface HashTile extends Tile {
  readonly level: number
}

/** The path of a tile below the log's prefix, for example `tile/0/x001/x234/067.p/8`. */
export const path = (tile: Tile): string =>
  `tile/${tile.level}/${indexPath(tile.index)}${tile.width === tileWidth ? "" : `.p/${tile.width}`}`

/** Groups of three digits, all but the last marked with an x. */
const indexPath = (index: number): string => {
  const digits = String(index)
  const groups = digits.padStart(Math.ceil(digits.length / 3) * 3, "0").match(/\d{3}/gu) ?? []
  return groups.map((group, i) => (i === groups.length - 1 ? group : `x${group}`)).join("/")
}

const pathPattern = /^tile\/(?<level>entries|\d{1,2})\/(?<index>(?:x\d{3}\/){0,5}\d{3})(?:\.p\/(?<width>\d{1,3}))?$/u

/** The tile a path names; none for any text that is not exactly the path of a tile. */
export const parsePath = (text: string): Option.Option<Tile> => {
  const { level, index, width } = pathPattern.exec(text)?.groups ?? {}
  if (level === undefined || index === undefined) return Option.none()
  const tile: Tile = {
    level: level === "entries" ? level : Number(level),
    index: Number(index.replace(/[x/]/gu, "")),
    width: width === undefined ? tileWidth : Number(width)
  }
  const inBounds = (tile.level === "entries" || tile.level <= 63) && Number.isSafeInteger(tile.index) && tile.width <= tileWidth
  // Written back it is the same text, or it had a superfluous zero, an empty tile or a full one called partial.
  return inBounds && tile.width > 0 && path(tile) === text ? Option.some(tile) : Option.none()
}

/** How many nodes (or entries) tile `index` of a level has in a log of `size` entries: 0 to 256. */
export const widthAt = (size: number, level: number | "entries", index: number): number => {
  const nodes = Math.floor(size / tileWidth ** (level === "entries" ? 0 : level))
  return Math.max(0, Math.min(tileWidth, nodes - index * tileWidth))
}

/** What one batch of new nodes adds to one tile: `hashes` go in at node `offset`. */
export interface Growth {
  readonly level: number
  readonly index: number
  readonly offset: number
  readonly hashes: Uint8Array
}

/** The growth of each tile that the nodes of one `MerkleTree.append` touch; nodes between the tiles' levels are not kept. */
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

/** The growths of appends that followed one another, as one of each tile: what one append of them all would have made. */
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

/** Reads the beginnings of tiles, `width` hashes at least of each, all at once and in the order of the question. */
export type ReadTiles<E = never, R = never> = (tiles: ReadonlyArray<HashTile>) => Effect.Effect<ReadonlyArray<Uint8Array>, E, R>

/** A tile is missing, or shorter than a log of `size` entries makes it: the store lost something. */
export class IncompleteTile extends Schema.TaggedError<IncompleteTile>()("IncompleteTile", {
  level: Schema.Int,
  index: Schema.Int,
  size: Schema.Int
}) {
  override get message() {
    return `Tile ${this.level}/${this.index} is not all there for a log of ${this.size} entries`
  }
}

/** Where a node comes from: `span` neighbouring hashes of a tile, from `offset` on. */
const placeOf = ({ level, index }: NodeId) => {
  const tileLevel = Math.floor(level / tileHeight)
  const span = 2 ** (level % tileHeight)
  const tileIndex = Math.floor((index * span) / tileWidth)
  return { level: tileLevel, index: tileIndex, offset: index * span - tileIndex * tileWidth, span }
}

/** Reads nodes of the tree of `size` leaves out of its tiles, each tile once, in the width it has at that size. */
export const readNodes =
  <E, R>(sha256: Sha256, size: number, readTiles: ReadTiles<E, R>): ReadNodes<E | IncompleteTile, R> =>
  (nodes) => {
    const places = nodes.map(placeOf)
    const tiles = new Map(
      places.map(({ level, index }): [string, HashTile] => [
        `${level}/${index}`,
        { level, index, width: widthAt(size, level, index) }
      ])
    )
    return Effect.flatMap(readTiles(Array.from(tiles.values())), (contents) => {
      const byTile = new Map(Array.from(tiles.keys(), (key, i) => [key, contents[i]]))
      return Effect.forEach(places, ({ level, index, offset, span }) => {
        const part = byTile.get(`${level}/${index}`)?.subarray(offset * hashLength, (offset + span) * hashLength)
        return part?.length === span * hashLength
          ? Effect.succeed(root(sha256, append(sha256, empty, hashesIn(part)).tree))
          : Effect.fail(new IncompleteTile({ level, index, size }))
      })
    })
  }

/** The hashes of a tile's content. */
export const hashesIn = (content: Uint8Array): ReadonlyArray<Hash> =>
  Array.from({ length: Math.floor(content.length / hashLength) }, (_, i) =>
    content.subarray(i * hashLength, (i + 1) * hashLength)
  )

/** A bundle is cut off or too long, or an entry is longer than a bundle can say. */
export class MalformedBundle extends Schema.TaggedError<MalformedBundle>()("MalformedBundle", { message: Schema.String }) {}

/** An entry bundle: each entry behind its length as two bytes, big-endian. */
export const encodeEntries = (entries: ReadonlyArray<Uint8Array>): Result.Result<Uint8Array, MalformedBundle> => {
  const tooLong = entries.findIndex((entry) => entry.length > maxLeafLength)
  if (tooLong !== -1)
    return Result.fail(new MalformedBundle({ message: `Entry ${tooLong} has more than ${maxLeafLength} bytes` }))
  const bundle = new Uint8Array(entries.reduce((length, entry) => length + 2 + entry.length, 0))
  const view = new DataView(bundle.buffer)
  let next = 0
  for (const entry of entries) {
    view.setUint16(next, entry.length)
    bundle.set(entry, next + 2)
    next += 2 + entry.length
  }
  return Result.succeed(bundle)
}

/** The entries of a bundle, at most 256. */
export const decodeEntries = (bundle: Uint8Array): Result.Result<ReadonlyArray<Uint8Array>, MalformedBundle> => {
  const view = new DataView(bundle.buffer, bundle.byteOffset, bundle.byteLength)
  const entries: Array<Uint8Array> = []
  for (let next = 0; next < bundle.length;) {
    const end = next + 2 <= bundle.length ? next + 2 + view.getUint16(next) : Infinity
    if (end > bundle.length)
      return Result.fail(new MalformedBundle({ message: `The bundle ends within entry ${entries.length}` }))
    if (entries.length === tileWidth)
      return Result.fail(new MalformedBundle({ message: `The bundle has more than ${tileWidth} entries` }))
    entries.push(bundle.subarray(next + 2, end))
    next = end
  }
  return Result.succeed(entries)
}
