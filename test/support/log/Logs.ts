/** Logs in memory: distinct leaves, their Merkle tree, and a store of the tree's nodes. */
import { Effect } from "effect"
import { append, empty, leafHash, type Node } from "#events/log/merkle/MerkleTree.ts"
import type { ReadNodes } from "#events/log/merkle/TreeProofs.ts"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"

export const { sha256 } = pureCrypto

export const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex")

export const hexes = (list: ReadonlyArray<Uint8Array>) => list.map(hex)

/** Returns `count` leaves of different lengths. Equal seeds produce equal leaves. */
export const leavesOf = (count: number, seed = 0): ReadonlyArray<Uint8Array> =>
  Array.from({ length: count }, (_, i) => {
    const digest = sha256(`${seed}/${i}`)
    return digest.subarray(0, (digest[0] ?? 0) % 33)
  })

export const logOf = (leaves: ReadonlyArray<Uint8Array>) => {
  const hashes = leaves.map((leaf) => leafHash(sha256, leaf))
  return { hashes, ...append(sha256, empty, hashes) }
}

/** Returns a function that finds nodes of a tree among `nodes`. */
export const readFrom = (nodes: ReadonlyArray<Node>): ReadNodes => {
  const stored = new Map(nodes.map((node) => [`${node.level}/${node.index}`, node.hash]))
  return (asked) =>
    Effect.succeed(
      asked.flatMap(({ level, index }) => {
        const hash = stored.get(`${level}/${index}`)
        return hash === undefined ? [] : [hash]
      })
    )
}

/** Returns a copy of `bytes` with one bit flipped. */
export const flipped = (bytes: Uint8Array, bit: number): Uint8Array => {
  const copy = Uint8Array.from(bytes)
  const at = Math.floor(bit / 8)
  copy[at] = (copy[at] ?? 0) ^ (1 << (bit % 8))
  return copy
}

/** Returns the numbers from 0 to `count` − 1. */
export const upTo = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, i) => i)
