/**
 * Inclusion and consistency proofs of RFC 6962, sections 2.1.1 and 2.1.2 (read 2026-11-21): lists of hashes, the one nearest the
 * leaf first.
 *
 * Each hash of a proof covers a range of leaves. Proving and verifying walk the same ranges from the root, so the two cannot
 * diverge: proving reads and folds the nodes, verifying folds the given hashes.
 *
 * A root does not determine its size: some proofs are valid for adjacent sizes as well. Take size and root from one signed
 * checkpoint.
 */
import { Effect, Result, Schema } from "effect"
import type { Sha256 } from "#domain/kernel/Crypto.ts"
import {
  equalHashes,
  fold,
  hashLength,
  nodeHash,
  nodesOf,
  type Hash,
  type NodeId,
  type Range
} from "#events/merkle/MerkleTree.ts"

/** The requested position or size is outside of the tree. */
export class OutsideTree extends Schema.TaggedError<OutsideTree>()("OutsideTree", { message: Schema.String }) {}

/** Reads complete nodes in one call, in the order requested. */
export type ReadNodes<E = never, R = never> = (nodes: ReadonlyArray<NodeId>) => Effect.Effect<ReadonlyArray<Hash>, E, R>

/** One level of the path from the root: the leaves of the sibling, and its side. */
interface Step extends Range {
  readonly side: "left" | "right"
}

/** Returns the largest power of two below `size`, where RFC 6962 splits a tree of `size` ≥ 2 leaves. */
const split = (size: number): number => {
  let half = 1
  while (2 * half < size) half *= 2
  return half
}

/**
 * Returns the path from the root of a tree of `size` leaves towards leaf `target`, down to `arrived`. Steps are ordered from the
 * bottom up.
 */
const descend = (size: number, target: number, arrived: (here: Range) => boolean) => {
  const steps: Array<Step> = []
  let here: Range = { from: 0, to: size }
  while (!arrived(here)) {
    const middle = here.from + split(here.to - here.from)
    const left = { from: here.from, to: middle }
    const right = { from: middle, to: here.to }
    steps.push(target < middle ? { ...right, side: "right" } : { ...left, side: "left" })
    here = target < middle ? left : right
  }
  return { here, steps: steps.toReversed() }
}

const inclusion = (index: number, size: number) => descend(size, index, ({ from, to }) => to - from === 1).steps

/**
 * The path to the old tree's last leaf ends at the subtree that both trees share. If this is the whole old tree, its root is
 * known.
 */
const consistency = (oldSize: number, newSize: number) => descend(newSize, oldSize - 1, ({ to }) => to === oldSize)

const isSize = (size: number) => Number.isSafeInteger(size) && size >= 0

/** Returns the ranges whose hashes prove that leaf `index` is in the tree of `size` leaves. */
export const inclusionRanges = (index: number, size: number): Result.Result<ReadonlyArray<Range>, OutsideTree> =>
  isSize(index) && isSize(size) && index < size
    ? Result.succeed(inclusion(index, size))
    : Result.fail(new OutsideTree({ message: `A log of ${size} entries has no position ${index}` }))

/**
 * Returns the ranges whose hashes prove that the tree of `newSize` leaves extends the tree of `oldSize`. Empty if `oldSize` is 0
 * or `newSize`.
 */
export const consistencyRanges = (oldSize: number, newSize: number): Result.Result<ReadonlyArray<Range>, OutsideTree> => {
  if (!isSize(oldSize) || !isSize(newSize) || oldSize > newSize) {
    return Result.fail(new OutsideTree({ message: `A log of ${newSize} entries never had ${oldSize}` }))
  }
  if (oldSize === 0) return Result.succeed([])
  const { here, steps } = consistency(oldSize, newSize)
  return Result.succeed(here.from === 0 ? steps : [here, ...steps])
}

/** Reads the nodes of all ranges in one call and folds each range to its hash. */
const hashRanges = Effect.fnUntraced(function* <E, R>(sha256: Sha256, readNodes: ReadNodes<E, R>, ranges: ReadonlyArray<Range>) {
  const parts = ranges.map(nodesOf)
  const nodes = parts.flat()
  const hashes = nodes.length === 0 ? [] : yield* readNodes(nodes)
  if (hashes.length !== nodes.length) return yield* Effect.die(`Requested ${nodes.length} nodes, received ${hashes.length}`)
  let next = 0
  return parts.map((part) => fold(sha256, hashes.slice(next, (next += part.length))))
})

/** Returns the inclusion proof of leaf `index` in the tree of `size` leaves. */
export const proveInclusion = Effect.fnUntraced(function* <E, R>(
  sha256: Sha256,
  readNodes: ReadNodes<E, R>,
  question: { readonly index: number; readonly size: number }
) {
  const ranges = yield* Effect.fromResult(inclusionRanges(question.index, question.size))
  return yield* hashRanges(sha256, readNodes, ranges)
})

/** Returns the consistency proof from the tree of `oldSize` leaves to the tree of `newSize`. */
export const proveConsistency = Effect.fnUntraced(function* <E, R>(
  sha256: Sha256,
  readNodes: ReadNodes<E, R>,
  question: { readonly oldSize: number; readonly newSize: number }
) {
  const ranges = yield* Effect.fromResult(consistencyRanges(question.oldSize, question.newSize))
  return yield* hashRanges(sha256, readNodes, ranges)
})

const areHashes = (hashes: ReadonlyArray<Hash>) => hashes.every((hash) => hash.length === hashLength)

/** Returns true if `proof` shows that `leafHash` is leaf `index` of the tree with this size and root. */
export const verifyInclusion = (
  sha256: Sha256,
  claim: {
    readonly index: number
    readonly size: number
    readonly root: Hash
    readonly leafHash: Hash
    readonly proof: ReadonlyArray<Hash>
  }
): boolean => {
  const { index, size, proof } = claim
  if (!isSize(index) || !isSize(size) || index >= size || !areHashes([claim.leafHash, ...proof])) return false
  const steps = inclusion(index, size)
  if (steps.length !== proof.length) return false
  const reached = proof.reduce(
    (hash, sibling, i) => (steps[i]?.side === "left" ? nodeHash(sha256, sibling, hash) : nodeHash(sha256, hash, sibling)),
    claim.leafHash
  )
  return equalHashes(reached, claim.root)
}

/** Returns true if `proof` shows that the new tree starts with the whole old tree. Every tree starts with the empty one. */
export const verifyConsistency = (
  sha256: Sha256,
  claim: {
    readonly oldSize: number
    readonly oldRoot: Hash
    readonly newSize: number
    readonly newRoot: Hash
    readonly proof: ReadonlyArray<Hash>
  }
): boolean => {
  const { oldSize, newSize, oldRoot, newRoot, proof } = claim
  if (!isSize(oldSize) || !isSize(newSize) || oldSize > newSize || !areHashes([oldRoot, newRoot, ...proof])) return false
  if (oldSize === 0) {
    return proof.length === 0 && equalHashes(oldRoot, sha256("")) && (newSize > 0 || equalHashes(newRoot, oldRoot))
  }
  const { here, steps } = consistency(oldSize, newSize)
  const [shared, ...siblings] = here.from === 0 ? [oldRoot, ...proof] : proof
  if (shared === undefined || siblings.length !== steps.length) return false
  const reached = siblings.reduce(
    (roots, sibling, i) =>
      steps[i]?.side === "left"
        ? { old: nodeHash(sha256, sibling, roots.old), new: nodeHash(sha256, sibling, roots.new) }
        : { old: roots.old, new: nodeHash(sha256, roots.new, sibling) },
    { old: shared, new: shared }
  )
  return equalHashes(reached.old, oldRoot) && equalHashes(reached.new, newRoot)
}
