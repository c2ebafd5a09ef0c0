/**
 * The Merkle tree of RFC 6962, section 2.1 (the same tree as RFC 9162, 2.1; both read 2026-11-21). Its leaves are numbered from 0
 * without gaps.
 *
 * A node is the root of a complete subtree: node (level, index) covers the leaves index·2^level to (index+1)·2^level − 1.
 * Complete nodes never change as the log grows, so they can be stored. All other hashes are computed from them on demand. Sizes may
 * exceed 2^31, so the code uses no bit operators.
 */
import type { Sha256 } from "#domain/kernel/Crypto.ts"

/** A SHA-256 hash of 32 bytes. */
export type Hash = Uint8Array

export const hashLength = 32

export interface NodeId {
  readonly level: number
  readonly index: number
}

export interface Node extends NodeId {
  readonly hash: Hash
}

/**
 * The state that an append needs: the size of the tree, and its `peaks`: the roots of its complete subtrees, the largest (leftmost)
 * first. There is one peak for each 1 in the binary form of the size, so at most 53.
 */
export interface Tree {
  readonly size: number
  readonly peaks: ReadonlyArray<Node>
}

export const empty: Tree = { size: 0, peaks: [] }

/** Returns SHA-256(0x00 ‖ leaf). A string is hashed in its UTF-8 form, which is faster than hashing a byte array. */
export const leafHash = (sha256: Sha256, leaf: Uint8Array | string): Hash => {
  if (typeof leaf === "string") return sha256(`\u0000${leaf}`)
  const message = new Uint8Array(leaf.length + 1)
  message.set(leaf, 1)
  return sha256(message)
}

// One buffer for all calls, which are synchronous. Allocating a buffer would take a sixth of the time of hashing.
const nodeMessage = new Uint8Array(1 + 2 * hashLength).fill(1, 0, 1)

/** Returns SHA-256(0x01 ‖ left ‖ right). */
export const nodeHash = (sha256: Sha256, left: Hash, right: Hash): Hash => {
  nodeMessage.set(left, 1)
  nodeMessage.set(right, 1 + hashLength)
  return sha256(nodeMessage)
}

/** Appends leaf hashes. Returns the new tree, and the nodes that became complete (including the leaves), in the order of completion. */
export const append = (
  sha256: Sha256,
  tree: Tree,
  leafHashes: ReadonlyArray<Hash>
): { readonly tree: Tree; readonly nodes: ReadonlyArray<Node> } => {
  const peaks = [...tree.peaks]
  const nodes: Array<Node> = []
  let size = tree.size
  for (const hash of leafHashes) {
    let top: Node = { level: 0, index: size, hash }
    nodes.push(top)
    for (let last = peaks.at(-1); last?.level === top.level; last = peaks.at(-1)) {
      peaks.pop()
      top = { level: top.level + 1, index: last.index / 2, hash: nodeHash(sha256, last.hash, top.hash) }
      nodes.push(top)
    }
    peaks.push(top)
    size += 1
  }
  return { tree: { size, peaks }, nodes }
}

/** Returns the Merkle Tree Hash of the whole log; for an empty log, the hash of the empty string. */
export const root = (sha256: Sha256, tree: Tree): Hash =>
  fold(
    sha256,
    tree.peaks.map((peak) => peak.hash)
  )

/** Returns the hash over the roots of adjacent complete subtrees, the leftmost (and largest) first. */
export const fold = (sha256: Sha256, hashes: ReadonlyArray<Hash>): Hash => {
  const [last, ...others] = hashes.toReversed()
  return last === undefined ? sha256("") : others.reduce((right, left) => nodeHash(sha256, left, right), last)
}

/** The leaves from `from` (inclusive) to `to` (exclusive). */
export interface Range {
  readonly from: number
  readonly to: number
}

/** Returns the smallest set of complete nodes that covers a range, from left to right. */
export const nodesOf = (range: Range): ReadonlyArray<NodeId> => {
  const nodes: Array<NodeId> = []
  for (let from = range.from; from < range.to;) {
    let level = 0
    let width = 1
    while (from % (2 * width) === 0 && from + 2 * width <= range.to) {
      level += 1
      width *= 2
    }
    nodes.push({ level, index: from / width })
    from += width
  }
  return nodes
}

/** Restores the tree of a stored log from its size and the hashes of `nodesOf({ from: 0, to: size })`, in that order. */
export const restore = (size: number, hashes: ReadonlyArray<Hash>): Tree => ({
  size,
  peaks: nodesOf({ from: 0, to: size }).flatMap((id, i) => {
    const hash = hashes[i]
    return hash === undefined ? [] : [{ ...id, hash }]
  })
})

export const equalHashes = (one: Hash, other: Hash): boolean =>
  one.length === hashLength && other.length === hashLength && one.every((byte, i) => byte === other[i])
