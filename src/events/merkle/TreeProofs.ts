/**
 * Inclusion and consistency proofs of RFC 6962, sections 2.1.1 and 2.1.2 (read 2026-11-21): lists of hashes, the one
 * nearest the leaf first.
 *
 * Each hash of a proof covers a range of leaves. The walk from the root finds the ranges; making a proof reads and folds
 * their nodes, and verifying one folds the given hashes along the same walk, so the two cannot drift apart.
 *
 * A root does not bind the size it belongs to: some proofs verify for neighbouring sizes as well. Take sizes and roots
 * from one signed checkpoint.
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

/** A proof was asked for that no tree of that size has. */
export class OutsideTree extends Schema.TaggedError<OutsideTree>()("OutsideTree", { message: Schema.String }) {}

/** Reads complete nodes, all at once, and answers in the order of the question. */
export type ReadNodes<E = never, R = never> = (nodes: ReadonlyArray<NodeId>) => Effect.Effect<ReadonlyArray<Hash>, E, R>

/** One level of the way down: the sibling's leaves, and on which side of the way it lies. */
interface Step extends Range {
  readonly side: "left" | "right"
}

/** The largest power of two below `size`, where RFC 6962 splits a tree of `size` ≥ 2 leaves. */
const split = (size: number): number => {
  let half = 1
  while (2 * half < size) half *= 2
  return half
}

/** The way from the root of a tree of `size` leaves towards leaf `target`, until `arrived`; steps from the bottom up. */
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
 * The way to the old tree's last leaf ends at the subtree both trees share; where that is the whole old tree, its root
 * is known.
 */
const consistency = (oldSize: number, newSize: number) => descend(newSize, oldSize - 1, ({ to }) => to === oldSize)

const isSize = (size: number) => Number.isSafeInteger(size) && size >= 0

/** The ranges whose hashes prove that leaf `index` is in the tree of `size` leaves. */
export const inclusionRanges = (index: number, size: number): Result.Result<ReadonlyArray<Range>, OutsideTree> =>
  isSize(index) && isSize(size) && index < size
    ? Result.succeed(inclusion(index, size))
    : Result.fail(new OutsideTree({ message: `A log of ${size} entries has no position ${index}` }))

/**
 * The ranges whose hashes prove that the tree of `newSize` leaves only adds to that of `oldSize`. From 0, or to itself,
 * there are none.
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
  const asked = parts.flat()
  const hashes = asked.length === 0 ? [] : yield* readNodes(asked)
  if (hashes.length !== asked.length) return yield* Effect.die(`${asked.length} nodes were asked for, ${hashes.length} came`)
  let next = 0
  return parts.map((part) => fold(sha256, hashes.slice(next, (next += part.length))))
})

/** The inclusion proof of leaf `index` in the tree of `size` leaves. */
export const proveInclusion = Effect.fnUntraced(function* <E, R>(
  sha256: Sha256,
  readNodes: ReadNodes<E, R>,
  question: { readonly index: number; readonly size: number }
) {
  const ranges = yield* Effect.fromResult(inclusionRanges(question.index, question.size))
  return yield* hashRanges(sha256, readNodes, ranges)
})

/** The consistency proof from the tree of `oldSize` leaves to that of `newSize`. */
export const proveConsistency = Effect.fnUntraced(function* <E, R>(
  sha256: Sha256,
  readNodes: ReadNodes<E, R>,
  question: { readonly oldSize: number; readonly newSize: number }
) {
  const ranges = yield* Effect.fromResult(consistencyRanges(question.oldSize, question.newSize))
  return yield* hashRanges(sha256, readNodes, ranges)
})

const areHashes = (hashes: ReadonlyArray<Hash>) => hashes.every((hash) => hash.length === hashLength)

/** Whether `proof` shows that `leafHash` is leaf `index` of the tree of `size` leaves with that root. */
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

/**
 * Whether `proof` shows that the tree with the new root begins with the whole tree with the old root. Every log begins
 * with the empty one.
 */
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
