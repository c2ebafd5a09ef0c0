/**
 * Verifies the log of a database, with or without a running service: every leaf, every node of the stored tree, every signed
 * checkpoint, gaps in positions and versions, personal documents, every projection, and the schema.
 */
import { Effect, Option, Stream } from "effect"
import * as AuditReads from "#events/log/verify/AuditReads.ts"
import * as CheckpointAudit from "#events/log/verify/CheckpointAudit.ts"
import * as EventSchemas from "#events/log/verify/EventSchemas.ts"
import * as DocumentAudit from "#events/log/verify/DocumentAudit.ts"
import * as Findings from "#events/log/verify/Findings.ts"
import * as LogCheck from "#events/log/verify/LogCheck.ts"
import * as ProjectionAudit from "#events/log/verify/ProjectionAudit.ts"
import * as SubjectCheck from "#events/log/verify/SubjectCheck.ts"
import * as SchemaAudit from "#events/log/verify/SchemaAudit.ts"
import type { Checkpoint } from "#events/log/merkle/Checkpoint.ts"
import { Crypto, type PureCrypto } from "#domain/kernel/Crypto.ts"
import { empty, equalHashes, type Hash, type Node, type Range } from "#events/log/merkle/MerkleTree.ts"
import type { Verifiers } from "#events/log/merkle/NoteKeys.ts"
import { growths, hashesIn, tileHeight, tileWidth, widthAt } from "#events/log/merkle/Tiles.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import * as LeafHashes from "#events/log/notary/LeafHashes.ts"
import { TreeStore } from "#events/log/notary/TreeStore.ts"

/** Number of events that are read and compared together, as one section of the log. A section has the events of eight tiles. */
const sectionSize = 8 * tileWidth
/** Number of reads that run at the same time, of `sectionSize` events each. */
const readAhead = 4
/** Number of tree nodes that are compared at once. */
const nodesAtOnce = 4_096

/**
 * `kept` are checkpoints from outside the database; `schema` compares its schema with that of this program. With `isFast`, the database
 * computes the leaf hashes of signed events. The program then reads all events of a signed range only if a hash in this range
 * differs.
 */
export interface DatabaseAuditOptions {
  readonly verifiers: Verifiers
  readonly kept: ReadonlyArray<CheckpointAudit.KeptCheckpoint>
  readonly schema: SchemaAudit.Comparison
  readonly isFast: boolean
  readonly progress: (done: number, of: number) => Effect.Effect<void>
}

/**
 * Result of a verification. The log has `events` events, and its newest checkpoint covers the first `signed` of them. The keys in
 * `signedBy` signed this checkpoint. `count` is the number of findings, of which `findings` has up to the first thousand.
 */
export interface AuditReport {
  readonly events: number
  readonly signed: number
  readonly checkpoints: number
  readonly signedBy: ReadonlyArray<string>
  /** The numbers of intact and erased personal documents; null if the verified export has no personal documents. */
  readonly documents: DocumentAudit.DocumentCounts | null
  /**
   * Positions of the events that record an adoption of the log. The events before an adoption are proved only by checkpoints that
   * are older than the adoption.
   */
  readonly adopted: ReadonlyArray<number>
  readonly findings: ReadonlyArray<Findings.Finding>
  readonly count: number
}

export const run = Effect.fn("DatabaseAudit.run")(function* ({
  isFast,
  kept: keptCheckpoints,
  progress,
  schema,
  verifiers
}: DatabaseAuditOptions) {
  const crypto = yield* Crypto
  const reads = yield* AuditReads.make
  const tree = yield* TreeStore
  const findings = Findings.make()
  const check = LogCheck.make(crypto, findings, empty)
  const checkpoints = CheckpointAudit.make(findings)
  const documents = DocumentAudit.make(crypto, findings)
  const compareContents = yield* makeCompareContents(crypto, findings)
  const upperTiles = yield* makeUpperTiles
  const open = CheckpointAudit.openWith(crypto, verifiers)

  const newest = Option.getOrNull(yield* tree.newest)
  const head = yield* reads.head
  const { end, kept, signed } = extentOf(
    CheckpointAudit.openKept(keptCheckpoints, open, findings),
    newest?.size ?? null,
    head,
    findings
  )
  let [checkpointCount, found, examined] = [0, 0, 0]

  /**
   * Compares the next `sectionSize` events with the stored tree, the checkpoints and the personal documents. Returns false if the
   * database lacks more than half of the events that were examined so far.
   */
  const examine = Effect.fnUntraced(function* (section: Section) {
    const cuts = [
      ...kept.filter(({ size }) => size > section.from && size <= section.to),
      ...CheckpointAudit.openStored(section.stored, open, findings)
    ]
    checkpointCount += section.stored.length
    reportMissingLeaves(section, findings)
    for (const part of partsOf(section, cuts)) {
      yield* upperTiles.compare(section.isTrusted ? check.trust(part.leaves) : check.take(part))
      for (const cut of cuts) if (cut.size === part.to) checkpoints.compare(cut, check.roots([]))
    }
    documents.compareAll(section.events, section.documents)
    compareContents(section)
    yield* progress(section.to, end)
    found += section.isTrusted ? section.to - section.from : section.events.length
    examined = section.to
    return examined <= 2 * (found + sectionSize)
  })

  // Stops if more than half of the examined events are missing. A forged checkpoint, or a forged row in `vatproof.logs`, can state
  // so many events that the loop would never end.
  const sections = Stream.fromIterable(sectionStarts(end)).pipe(
    Stream.mapEffect(yield* makeReadSection({ end, isFast, signed }), { concurrency: readAhead }),
    Stream.mapEffect(examine),
    Stream.takeWhile((isMostlyThere) => isMostlyThere),
    Stream.runDrain
  )
  const [, ofProjections] = yield* Effect.all([sections, ProjectionAudit.run(Findings.make())], { concurrency: 2 })
  if (examined < end) yield* reportRest(examined, end, open, findings)
  const { leavesAreSigned } = checkpoints.conclude(check)
  const wrongTiles = yield* upperTiles.finish
  if (leavesAreSigned) for (const tile of wrongTiles) findings.add(null, `the stored tree is wrong in tile ${tile}`)
  documents.conclude(end, yield* reads.head)
  yield* compareTables(reads, end, findings)
  findings.addAll(ofProjections)
  yield* SchemaAudit.run(schema, findings)
  return {
    events: head,
    signed: newest?.size ?? 0,
    checkpoints: checkpointCount,
    signedBy: newest === null ? [] : CheckpointAudit.signedBy(crypto, newest.note, verifiers),
    documents: documents.counts(),
    adopted: yield* reads.adoptions,
    findings: findings.list(),
    count: findings.count()
  } satisfies AuditReport
})

/** Runs the checks of the product, and compares the events with the schemas of their types unless the section is trusted. */
const makeCompareContents = Effect.fnUntraced(function* (crypto: PureCrypto, findings: Findings.Findings) {
  const compareSubjects = (yield* SubjectCheck.all).make({ crypto, findings, begins: true })
  const compareSchema = yield* EventSchemas.make(findings)
  return ({ events, isTrusted }: Section) => {
    events.forEach(compareSubjects)
    if (!isTrusted) events.forEach(compareSchema)
  }
})

/**
 * Reports that the verification did not examine the positions from `examined` to `end`. Also reports the invalid checkpoints whose
 * last event is in this range.
 */
const reportRest = Effect.fnUntraced(function* (
  examined: number,
  end: number,
  open: ReturnType<typeof CheckpointAudit.openWith>,
  findings: Findings.Findings
) {
  findings.add(
    examined,
    `the verification ends at this position, because more than half of the events before it are missing; the log should have ${end} events`
  )
  const tree = yield* TreeStore
  CheckpointAudit.openStored(yield* tree.checkpointsFrom(examined + 1, sectionSize), open, findings)
})

interface Extent {
  readonly end: number
  readonly signed: number
  readonly isFast: boolean
}

/**
 * The rows that the database has for `sectionSize` positions. `isTrusted` is true if the leaf hashes that the database computed
 * from the events equal the leaf hashes in the stored tree.
 */
type Section = Effect.Success<ReturnType<Effect.Success<ReturnType<typeof makeReadSection>>>>

const makeReadSection = Effect.fnUntraced(function* ({ end, isFast, signed }: Extent) {
  const reads = yield* AuditReads.make
  const tree = yield* TreeStore
  const computed = yield* LeafHashes.makeComputed
  const { types } = yield* SubjectCheck.all

  return Effect.fnUntraced(function* (from: number) {
    const to = Math.min(from + sectionSize, end)
    const [hashes, tiles, stored, documents] = yield* Effect.all(
      [
        isFast && to <= signed ? computed({ from, to }) : Effect.succeed(null),
        tree.readTiles(tilesOf(from, Math.min(to, signed), signed)),
        tree.checkpointsFrom(from === 0 ? 0 : from + 1, sectionSize + 1),
        reads.documents(from, to)
      ],
      { concurrency: "unbounded" }
    )
    const leaves = tiles.flatMap((tile, i) => leavesOf(tile, { from: from + i * tileWidth, to: Math.min(to, signed) }))
    const isTrusted = hashes !== null && hashes.length === leaves.length && hashes.every((hash, i) => isSame(hash, leaves[i]))
    const events = isTrusted ? yield* reads.eventsWithDocuments(from, to, types) : yield* reads.events(from, to)
    return { from, to, isTrusted, events, documents, leaves, stored: stored.filter(({ size }) => size <= Math.min(to, signed)) }
  })
})

/**
 * Reports rows that do not belong to the log of `end` events: hashes in tiles that no checkpoint covers, tiles and checkpoints of unknown logs, and
 * events and personal documents at positions outside of the log.
 */
export const compareTables = Effect.fnUntraced(function* (
  reads: Effect.Success<typeof AuditReads.make>,
  end: number,
  findings: Findings.Findings
) {
  for (const { index, level } of yield* reads.surplus) {
    findings.add(null, `the stored tree has more hashes in tile ${level}/${index} than were signed`)
  }
  for (const { logId: other, position, what } of yield* reads.strays(end)) {
    const place = other === logId ? "outside of the positions of the log" : `of log ${other}, which does not exist`
    findings.add(position, `there is ${what} ${place}`)
  }
})

/**
 * Determines how many events the log should have, and how many of them were signed. A kept checkpoint can cover events that the
 * database lacks.
 */
const extentOf = (
  kept: ReadonlyArray<CheckpointAudit.OpenedCheckpoint>,
  newest: number | null,
  head: number,
  findings: Findings.Findings
) => {
  const signedInDatabase = newest ?? 0
  if (newest === null) findings.add(null, "the log was never signed: nothing proves its content")
  if (head < signedInDatabase)
    findings.add(head, `according to the table logs the log ends at this position, but ${signedInDatabase} events were signed`)
  for (const { keptAt, size } of kept) {
    if (size > signedInDatabase)
      findings.add(
        size - 1,
        `the checkpoint in ${keptAt} has ${size} events, but the database has only ${signedInDatabase} signed events: ${olderState}`
      )
  }
  const signed = Math.max(signedInDatabase, ...kept.map(({ size }) => size))
  return { kept, signed, end: Math.max(head, signed) }
}

const olderState =
  "it was restored to an earlier state, or an attacker cut events off. After a restore of yours, verify it with a checkpoint from before that state, then run vatproof notary adopt"

const isSame = (hash: Hash, other: Hash | undefined) => other !== undefined && equalHashes(hash, other)

const sectionStarts = function* (end: number) {
  for (let from = 0; from < end; from += sectionSize) yield from
}

/**
 * Returns the tiles of level 0, which contain the leaf hashes, for the positions `from` to `to` (exclusive). `from` must be the
 * first position of a tile. `signed` is the number of signed events.
 */
const tilesOf = (from: number, to: number, signed: number) => {
  const count = Math.max(0, Math.ceil((to - from) / tileWidth))
  return Array.from({ length: count }, (_, i) => {
    const index = from / tileWidth + i
    return { level: 0, index, width: widthAt(signed, 0, index) }
  })
}

/** Returns the leaf hashes in a tile. `from` is the first position of the tile. A hash that the tile lacks is an empty array. */
const leavesOf = (tile: Uint8Array, { from, to }: Range): ReadonlyArray<Hash> => {
  const leaves = hashesIn(tile)
  const missing = Math.min(tileWidth, to - from) - leaves.length
  return [...leaves, ...Array.from({ length: Math.max(0, missing) }, () => new Uint8Array())]
}

/** Reports the positions whose leaf hash is missing in the stored tree. Of adjacent positions, it reports only the first. */
const reportMissingLeaves = ({ from, leaves }: LogCheck.LogSection, findings: Findings.Findings) => {
  for (const [i, leaf] of leaves.entries())
    if (leaf.length === 0 && leaves[i - 1]?.length !== 0) findings.add(from + i, "the stored tree has no hash for this event")
}

/**
 * Splits a section of the log so that a part ends at the size of each checkpoint in `cuts`. The root at this size can then be
 * compared with the checkpoint.
 */
const partsOf = ({ events, from, leaves, to }: LogCheck.LogSection, cuts: ReadonlyArray<Checkpoint>) => {
  const ends = [...new Set([...cuts.map(({ size }) => size), to])].toSorted((one, other) => one - other)
  let start = from
  let next = 0
  return ends.map((end): LogCheck.LogSection => {
    const first = next
    while (next < events.length && (events[next]?.position ?? end) < end) next += 1
    const part = { from: start, to: end, events: events.slice(first, next), leaves: leaves.slice(start - from, end - from) }
    start = end
    return part
  })
}

/**
 * Compares the stored tiles above level 0 with the nodes that were computed from the leaf hashes, at least 4,096 nodes at a time.
 * `finish` compares the remaining nodes, and returns the wrong tiles.
 */
const makeUpperTiles = Effect.map(TreeStore, (tree) => {
  const wrong = new Set<string>()
  let waiting: Array<Node> = []

  const flush = Effect.gen(function* () {
    const updates = growths(waiting)
    waiting = []
    const tiles = yield* tree.readTiles(updates.map(({ index, level }) => ({ level, index, width: tileWidth })))
    for (const [i, { hashes, index, level, offset }] of updates.entries()) {
      const stored: ReadonlyArray<Hash> = hashesIn(tiles[i] ?? new Uint8Array())
      const same = hashesIn(hashes).every((hash, j) => equalHashes(hash, stored[offset + j] ?? new Uint8Array()))
      if (!same) wrong.add(`${level}/${index}`)
    }
  })

  return {
    compare: (nodes: ReadonlyArray<Node>) =>
      Effect.suspend(() => {
        for (const node of nodes) if (node.level > 0 && node.level % tileHeight === 0) waiting.push(node)
        return waiting.length >= nodesAtOnce ? flush : Effect.void
      }),
    finish: Effect.andThen(
      flush,
      Effect.sync(() => wrong)
    )
  }
})
