/**
 * Verifies the events of a log: their order, their versions and their leaf hashes. The caller passes the events in consecutive
 * ranges (sections), from a database or from an export. LogCheck also builds two Merkle trees: one of the stored leaf hashes, and
 * one of the leaf hashes that it computes from the events. If both trees have the signed root, neither the events nor the stored
 * hashes were changed.
 */
import { Result } from "effect"
import type { Findings } from "#events/log/verify/Findings.ts"
import type { PureCrypto, Sha256 } from "#domain/kernel/Crypto.ts"
import { append, equalHashes, type Hash, leafHash, type Node, nodeHash, root, type Tree } from "#events/log/merkle/MerkleTree.ts"
import { leafOf } from "#events/log/notary/StoredLeaf.ts"
import type { StoredEvent } from "#events/log/store/StoredEvent.ts"

/**
 * A range of a log: the events at positions `from` (inclusive) to `to` (exclusive), in order. `leaves` are the stored leaf hashes
 * of the signed events. An empty hash means that the stored tree has no hash for the event.
 */
export interface LogSection {
  readonly from: number
  readonly to: number
  readonly events: ReadonlyArray<StoredEvent>
  readonly leaves: ReadonlyArray<Hash>
}

/** The roots of two Merkle trees: one of the stored leaf hashes, and one of the leaf hashes that were computed from the events. */
export interface LogRoots {
  readonly ofLeaves: Hash
  readonly ofEvents: Hash
}

/** Maximum number of positions in `different`. */
const maxDifferent = 1_000

/** Placeholder for the leaf hash of a missing or malformed event. */
const nothing: Hash = new Uint8Array(32)

/**
 * Creates a function that compares the version of each event with the preceding event of its stream, and the time of each event
 * with the preceding event of the log. `begins` is true if the comparison starts at position 0.
 */
const makeNeighbours = (findings: Findings, begins: boolean) => {
  // The newest version of each stream.
  const versions = new Map<string, number>()
  let isWhole = begins
  let recordedAt = ""

  const compare = (event: StoredEvent) => {
    const { position, stream_id, version } = event
    const before = versions.get(stream_id)
    versions.set(stream_id, version)
    if (before !== undefined && version !== before + 1)
      findings.add(position, `version ${version} of the stream ${stream_id} follows version ${before}`)
    // The first event of a stream must have version 1. A comparison that does not start at position 0, or that skipped events,
    // can have missed this event.
    if (before === undefined && isWhole && version !== 1)
      findings.add(position, `the stream ${stream_id} begins with version ${version}`)
    if (event.recorded_at < recordedAt)
      findings.add(position, `the event was recorded at ${event.recorded_at}, before the event at the preceding position`)
    recordedAt = event.recorded_at
  }

  return {
    compare,
    /**
     * Forgets the preceding events. The caller must call this after it skipped events, because the next event then does not follow
     * the last compared event.
     */
    forget: () => {
      isWhole = false
      recordedAt = ""
      versions.clear()
    }
  }
}

/** Creates a LogCheck. `start` is the Merkle tree of all events before the first event that will be compared. */
export const make = (crypto: PureCrypto, findings: Findings, start: Tree) => {
  const { sha256 } = crypto
  const different: Array<number> = []
  let ofLeaves = start
  let ofEvents = start
  const neighbours = makeNeighbours(findings, start.size === 0)

  const leafHashOf = (event: StoredEvent): Hash => {
    const leaf = leafOf(crypto, event)
    if (Result.isSuccess(leaf)) return leafHash(sha256, leaf.success)
    findings.add(event.position, leaf.failure.message)
    return nothing
  }

  /**
   * Compares the events of the next range with their stored leaf hashes, and with the preceding events. Returns the tree nodes that
   * the stored leaf hashes of this range completed.
   */
  const take = ({ events: unordered, from, leaves, to }: LogSection): ReadonlyArray<Node> => {
    const events = oneAPosition(unordered, findings)
    const ofLeavesHere: Array<Hash> = []
    const ofEventsHere: Array<Hash> = []
    let next = 0
    let same = ofLeaves === ofEvents
    for (let position = from; position < to; position += 1) {
      const event = events[next]?.position === position ? events[next] : undefined
      if (event === undefined) findings.missing(position)
      else {
        next += 1
        neighbours.compare(event)
      }
      const leaf = leaves[position - from]
      if (leaf === undefined) continue
      const hash = event === undefined ? nothing : leafHashOf(event)
      ofEventsHere.push(hash)
      ofLeavesHere.push(leaf.length === 0 ? hash : leaf)
      if (leaf.length === 0 || equalHashes(hash, leaf)) continue
      same = false
      if (hash !== nothing && different.length < maxDifferent) different.push(position)
    }
    const grown = append(sha256, ofLeaves, ofLeavesHere)
    ofEvents = same ? grown.tree : append(sha256, ofEvents, ofEventsHere).tree
    ofLeaves = grown.tree
    return grown.nodes
  }

  /**
   * Adds the next range by its leaf hashes alone. The caller has already verified that the events have these leaf hashes. Returns
   * the tree nodes that these leaf hashes completed, like `take`.
   */
  const trust = (leaves: ReadonlyArray<Hash>): ReadonlyArray<Node> => {
    const grown = append(sha256, ofLeaves, leaves)
    ofEvents = ofLeaves === ofEvents ? grown.tree : append(sha256, ofEvents, leaves).tree
    ofLeaves = grown.tree
    neighbours.forget()
    return grown.nodes
  }

  return {
    take,
    trust,
    /**
     * Returns the roots of both trees. The trees contain all ranges that were added so far, and on their right the complete subtrees
     * in `after`.
     */
    roots: (after: ReadonlyArray<Node>): LogRoots => {
      const hash = root(sha256, extend(sha256, ofLeaves, after))
      return { ofLeaves: hash, ofEvents: ofEvents === ofLeaves ? hash : root(sha256, extend(sha256, ofEvents, after)) }
    },
    /** Positions of the events whose computed leaf hash differs from the stored leaf hash. */
    different
  }
}

export type LogCheck = ReturnType<typeof make>

/** Returns the events in ascending order. Reports and skips a duplicate position and an event out of order. */
const oneAPosition = (events: ReadonlyArray<StoredEvent>, findings: Findings): ReadonlyArray<StoredEvent> => {
  let last = -1
  return events.filter(({ position }) => {
    if (position <= last) findings.add(position, "there is more than one event at this position, or the events are out of order")
    const isNext = position > last
    last = Math.max(last, position)
    return isNext
  })
}

/** Returns the tree extended by complete subtrees on its right. Each subtree begins where the previous subtree ends. */
const extend = (sha256: Sha256, tree: Tree, nodes: ReadonlyArray<Node>): Tree =>
  nodes.reduce((grown, node) => {
    const peaks = [...grown.peaks]
    let top = node
    for (let last = peaks.at(-1); last?.level === top.level; last = peaks.at(-1)) {
      peaks.pop()
      top = { level: top.level + 1, index: last.index / 2, hash: nodeHash(sha256, last.hash, top.hash) }
    }
    return { size: grown.size + 2 ** node.level, peaks: [...peaks, top] }
  }, tree)
