/**
 * Reads a log once, from any position, and compares each event with its neighbours and its signed leaf. Independent of the source
 * of events and leaves: a database or an export.
 */
import { Result } from "effect"
import type { Findings } from "#events/audit/verify/Findings.ts"
import type { PureCrypto, Sha256 } from "#domain/kernel/Crypto.ts"
import { append, equalHashes, type Hash, leafHash, type Node, nodeHash, root, type Tree } from "#events/merkle/MerkleTree.ts"
import { leafOf } from "#events/notary/StoredLeaf.ts"
import type { StoredEvent } from "#events/store/StoredEvent.ts"

/**
 * Events at positions `from` (inclusive) to `to` (exclusive), by position, and the known leaves of these positions as far as they
 * are signed. An empty leaf is unknown.
 */
export interface LogSection {
  readonly from: number
  readonly to: number
  readonly events: ReadonlyArray<StoredEvent>
  readonly leaves: ReadonlyArray<Hash>
}

/** The last event of a stream so far. */
export interface StreamEnd {
  version: number
  readonly first: number
  last: number
}

/** Roots of a log: of its known leaves, and of the leaves computed from the events. */
export interface LogRoots {
  readonly ofLeaves: Hash
  readonly ofEvents: Hash
}

export interface LogCheck {
  /** Adds the next section; returns the nodes that its leaves completed in the tree of leaves. */
  readonly take: (section: LogSection) => ReadonlyArray<Node>
  /** Adds a section whose events are known to have these leaves; returns the same nodes. */
  readonly trust: (leaves: ReadonlyArray<Hash>) => ReadonlyArray<Node>
  /** Roots over all sections so far and the complete subtrees to their right. */
  readonly roots: (after: ReadonlyArray<Node>) => LogRoots
  /** Positions where the leaf of the event differs from the known leaf. */
  readonly different: ReadonlyArray<number>
}

/** Maximum number of differing positions that are reported one by one. */
const maxDifferent = 1_000

/** Placeholder for a missing event in the tree of events. */
const nothing: Hash = new Uint8Array(32)

/**
 * Compares events with the preceding ones, in their streams and in the log. `begins`: the first event is the first of the log.
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
      findings.add(position, `it was recorded at ${event.recorded_at}, before the event below it`)
    recordedAt = event.recorded_at
  }

  return {
    compare,
    /** Forgets the preceding events, after a gap. */
    forget: () => {
      isWhole = false
      recordedAt = ""
      streams.clear()
    }
  }
}

/** `start` is the tree before the first section. */
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

/** Reports and skips duplicate positions and events out of order. */
const oneAPosition = (events: ReadonlyArray<StoredEvent>, findings: Findings): ReadonlyArray<StoredEvent> => {
  let last = -1
  return events.filter(({ position }) => {
    if (position <= last) findings.add(position, "more than one event at this position, or events out of order")
    const isNext = position > last
    last = Math.max(last, position)
    return isNext
  })
}

/** Adds complete subtrees to the right of the tree; each begins where the previous one ends. */
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
