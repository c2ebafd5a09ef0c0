/**
 * Inclusion proofs of RFC 6962, section 2.1.1 (read 2026-11-21): lists of hashes in the order from the leaf to the root.
 *
 * Each hash of a proof covers a range of leaves. The prover computes these hashes from stored nodes, and the verifier combines them
 * to the root. Both compute the ranges with the same code.
 *
 * A proof can be valid for several tree sizes with the same root. A verifier must therefore take size and root from the same signed
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
} from "#events/log/merkle/MerkleTree.ts"

/** The requested position or size is outside of the tree. */
export class OutsideTree extends Schema.TaggedError<OutsideTree>()("OutsideTree", { message: Schema.String }) {}

/** Returns the hashes of complete nodes, in the order of the request. */
export type ReadNodes<E = never, R = never> = (nodes: ReadonlyArray<NodeId>) => Effect.Effect<ReadonlyArray<Hash>, E, R>

/** A step from the root towards a leaf: the range and the side of the sibling, which is the subtree without that leaf. */
interface Step extends Range {
  readonly side: "left" | "right"
}

/** Returns where RFC 6962 splits a tree of `size` ≥ 2 leaves: the largest power of two below `size`. */
const split = (size: number): number => {
  let half = 1
  while (2 * half < size) half *= 2
  return half
}

/** Walks from the root of a tree of `size` leaves to leaf `index`. Returns the steps, the lowest first. */
const inclusion = (index: number, size: number) => {
  const steps: Array<Step> = []
  let here: Range = { from: 0, to: size }
  while (here.to - here.from > 1) {
    const middle = here.from + split(here.to - here.from)
    const left = { from: here.from, to: middle }
    const right = { from: middle, to: here.to }
    steps.push(index < middle ? { ...right, side: "right" } : { ...left, side: "left" })
    here = index < middle ? left : right
  }
  return steps.toReversed()
}

const isSize = (size: number) => Number.isSafeInteger(size) && size >= 0

/** Returns the ranges whose hashes prove that leaf `index` is in the tree of `size` leaves. */
export const inclusionRanges = (index: number, size: number): Result.Result<ReadonlyArray<Range>, OutsideTree> =>
  isSize(index) && isSize(size) && index < size
    ? Result.succeed(inclusion(index, size))
    : Result.fail(new OutsideTree({ message: `A log of ${size} entries has no position ${index}` }))

/** Returns the hash over each range. Reads the nodes of all ranges in one call. */
const hashRanges = Effect.fnUntraced(function* <E, R>(sha256: Sha256, readNodes: ReadNodes<E, R>, ranges: ReadonlyArray<Range>) {
  const parts = ranges.map(nodesOf)
  const nodes = parts.flat()
  const hashes = nodes.length === 0 ? [] : yield* readNodes(nodes)
  if (hashes.length !== nodes.length)
    return yield* Effect.die(`Requested ${nodes.length} hashes of the Merkle tree, received ${hashes.length}`)
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

const areHashes = (hashes: ReadonlyArray<Hash>) => hashes.every((hash) => hash.length === hashLength)

/** Returns true if `proof` proves that `leafHash` is leaf `index` of the tree with this size and root. */
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
