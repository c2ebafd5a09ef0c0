/**
 * Compares each event of a log with the preceding event, with its stream and with its stored leaf hash. The caller passes the log section
 * by section, from a database or from an export. It also builds two Merkle trees: one of the stored leaf hashes, and one of the leaf
 * hashes that it computes from the events. If both have the signed root, neither was changed.
 */
import { Result } from "effect"
import type { Findings } from "#events/audit/verify/Findings.ts"
import type { PureCrypto, Sha256 } from "#domain/kernel/Crypto.ts"
import { append, equalHashes, type Hash, leafHash, type Node, nodeHash, root, type Tree } from "#events/merkle/MerkleTree.ts"
import { leafOf } from "#events/notary/StoredLeaf.ts"
import type { StoredEvent } from "#events/store/StoredEvent.ts"

/**
 * The events at positions `from` (inclusive) to `to` (exclusive), in order. `leaves` are the stored leaf hashes of the signed events. An
 * empty hash means that the stored tree has no hash for the event.
 */
export interface LogSection {
  readonly from: number
  readonly to: number
  readonly events: ReadonlyArray<StoredEvent>
  readonly leaves: ReadonlyArray<Hash>
}

/** The newest version of a stream so far, and the positions of its first and last event. */
export interface StreamEnd {
  version: number
  readonly first: number
  last: number
}

/** The roots of both trees: of the stored leaf hashes, and of the leaf hashes that were computed from the events. */
export interface LogRoots {
  readonly ofLeaves: Hash
  readonly ofEvents: Hash
}

export interface LogCheck {
  /** Compares the next section. Returns the nodes that its stored leaf hashes completed in the tree. */
  readonly take: (section: LogSection) => ReadonlyArray<Node>
  /** Adds a section without comparing its events, which are known to have these leaf hashes. Returns the completed nodes, like `take`. */
  readonly trust: (leaves: ReadonlyArray<Hash>) => ReadonlyArray<Node>
  /** Returns the roots over all sections so far and the subtrees `after` them. */
  readonly roots: (after: ReadonlyArray<Node>) => LogRoots
  /** Positions where the leaf hash of the event differs from the stored hash. */
  readonly different: ReadonlyArray<number>
}

/** Maximum number of differing positions that are reported one by one. */
const maxDifferent = 1_000

/** Stands for the leaf hash of a missing or malformed event. */
const nothing: Hash = new Uint8Array(32)

/**
 * Creates a comparison of each event's version with the preceding event of its stream, and of its time with the preceding event of the
 * log. `begins` is true if the comparison starts at position 0.
 */
const makeNeighbours = (findings: Findings, begins: boolean) => {
  const streams = new Map<string, StreamEnd>()
  let isWhole = begins
  let recordedAt = ""

  const compare = (event: StoredEvent) => {
    const { position, stream_id, version } = event
    const stream = streams.get(stream_id)
    if (stream === undefined) {
      // In a part of the log, a stream may have begun earlier.
      if (isWhole && version !== 1) findings.add(position, `the stream ${stream_id} begins with version ${version}`)
      streams.set(stream_id, { version, first: position, last: position })
    } else {
      if (version !== stream.version + 1) {
        findings.add(position, `version ${version} of the stream ${stream_id} follows version ${stream.version}`)
      }
      stream.version = version
      stream.last = position
    }
    if (event.recorded_at < recordedAt)
      findings.add(position, `the event was recorded at ${event.recorded_at}, before the event at the preceding position`)
    recordedAt = event.recorded_at
  }

  return {
    compare,
    /** Forgets the preceding events, because events were skipped between them and the next events. */
    forget: () => {
      isWhole = false
      recordedAt = ""
      streams.clear()
    }
  }
}

/** Creates a check. `start` is the tree of all events before the first section. */
export const make = (crypto: PureCrypto, findings: Findings, start: Tree): LogCheck => {
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

  const take = ({ events: unordered, from, leaves, to }: LogSection) => {
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

  const trust = (leaves: ReadonlyArray<Hash>) => {
    const grown = append(sha256, ofLeaves, leaves)
    ofEvents = ofLeaves === ofEvents ? grown.tree : append(sha256, ofEvents, leaves).tree
    ofLeaves = grown.tree
    neighbours.forget()
    return grown.nodes
  }

  return {
    take,
    trust,
    roots: (after) => {
      const hash = root(sha256, extend(sha256, ofLeaves, after))
      return { ofLeaves: hash, ofEvents: ofEvents === ofLeaves ? hash : root(sha256, extend(sha256, ofEvents, after)) }
    },
    different
  }
}

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

/** Returns the tree extended by complete subtrees on its right. Each begins where the previous one ends. */
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
