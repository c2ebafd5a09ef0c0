/**
 * Decides whether the notary may sign a new checkpoint. It compares the log with its signed history: the earlier checkpoints and the
 * stored Merkle tree. It refuses a log that lost signed events, that contradicts an earlier checkpoint, or that has events but no
 * checkpoint.
 */
import { Duration, Effect, Option, Ref, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { LogOpened } from "#domain/log/LogPurpose.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as Checkpoint from "#events/log/merkle/Checkpoint.ts"
import { Crypto, type Sha256 } from "#domain/kernel/Crypto.ts"
import { empty, equalHashes, type Hash, hashLength, root, type Tree } from "#events/log/merkle/MerkleTree.ts"
import { leafHashes } from "#events/log/notary/StoredLeaf.ts"
import type { Verifiers } from "#events/log/merkle/NoteKeys.ts"
import type { LogKeys } from "#events/log/notary/LogSigner.ts"
import { hashesIn, tileWidth, widthAt } from "#events/log/merkle/Tiles.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import { TreeStore } from "#events/log/notary/TreeStore.ts"

/** The notary refuses the log, because the log contradicts its signed history or was never signed. An operator must verify the log and adopt it. */
export class LogForked extends Schema.TaggedError<LogForked>()("LogForked", { message: Schema.String }) {}

/** A checkpoint that this machine stored outside the database, in the file `at`. */
export interface SeenCheckpoint {
  readonly note: string
  readonly at: string
}

/** The part of the log that was signed earlier: its first `size` events have this Merkle root. */
interface KnownHistory {
  readonly size: number
  readonly root: Hash
}

/** The signed tree and the newest checkpoint; `note` is null for a log that was never signed. */
interface SignedTree {
  readonly tree: Tree
  readonly note: string | null
}

/**
 * Maximum number of unsigned events at the start, and maximum time between the first and the last of them. A notary that dies leaves the events
 * of a few seconds unsigned. More events mean that checkpoints were removed or that no notary ran, so the notary refuses to sign these events.
 * The number limits an attacker, who can set the times of events.
 */
const unsignedAtMost = { time: Duration.hours(1), events: 100_000 }

const retryFor = "3 seconds"

const forked = (message: string) => new LogForked({ message })

export const make = Effect.fnUntraced(function* (keys: LogKeys) {
  const crypto = yield* Crypto
  const { sha256 } = crypto
  const { load, read } = yield* makeLoad(keys)
  const { compare, requireNew } = yield* makeComparison

  // `counting` has the keys whose signatures the notary accepts. After the first signature by a current key, the notary rejects
  // former keys. Otherwise a holder of a former key could sign a forged log, and the notary would continue this log.
  const isOurs = (note: string) => Checkpoint.signersOf(crypto, note, keys.signers).length > 0
  const counting = yield* Ref.make<Verifiers>(keys.verifiers)
  const loadFrom = Effect.fnUntraced(function* (history: KnownHistory) {
    const loaded = yield* load(history, yield* Ref.get(counting))
    if (loaded.note !== null && isOurs(loaded.note)) yield* Ref.set(counting, keys.signers)
    return loaded
  })
  const loadSeen = ({ at, note }: SeenCheckpoint) =>
    read(note).pipe(
      Effect.flatMap(loadFrom),
      Effect.catchTag("LogForked", ({ message }) => Effect.fail(forked(`${message} (compared with the checkpoint in ${at})`)))
    )

  return {
    /**
     * Returns the signed tree and its checkpoint if the log extends every checkpoint in `seen`. This machine stored the checkpoints
     * in `seen` outside the database. The returned note is null if the log is new and was never signed; `unsigned` is then its size.
     */
    recognise: Effect.fn("NotaryRefusals.recognise")(function* (seen: ReadonlyArray<SeenCheckpoint>) {
      yield* Ref.set(counting, seen.some(({ note }) => isOurs(note)) ? keys.signers : keys.verifiers)
      const loaded = yield* Effect.forEach(seen, loadSeen)
      const found = loaded.at(-1) ?? (yield* loadFrom(historyOf(sha256, empty)))
      if (found.note === null) return { ...found, unsigned: yield* requireNew() }
      yield* compare(found.tree, seen.length > 0)
      return { ...found, unsigned: 0 }
    }),
    /** Returns the current signed tree and its checkpoint if this tree extends `tree`, which was signed before. */
    follow: (tree: Tree) => loadFrom(historyOf(sha256, tree)),
    /** After this call, a checkpoint that only former keys signed is rejected. */
    trustSigners: Ref.set(counting, keys.signers)
  }
})

/** Loads the signed tree from the database. */
const makeLoad = Effect.fnUntraced(function* (keys: LogKeys) {
  const crypto = yield* Crypto
  const tree = yield* TreeStore
  const { sha256 } = crypto

  /** Parses a checkpoint. Fails unless one of the log's keys signed it. */
  const read = (note: string, verifiers: Verifiers = keys.verifiers) =>
    Effect.fromResult(Checkpoint.open(crypto, note, { origin: keys.name, verifiers })).pipe(
      Effect.mapError(({ message }) =>
        forked(
          `A checkpoint was not signed by a key in NOTARY_KEY for ${keys.name} (${message}). Set NOTARY_KEY to the key that signed the checkpoint, or add its public key after the new key`
        )
      )
    )

  /**
   * Returns the stored tree and its newest checkpoint. Fails unless the tree matches the checkpoint, one of `verifiers` signed the
   * checkpoint, and the tree extends `history`.
   */
  const load = Effect.fn("NotaryRefusals.load")(
    function* (history: KnownHistory, verifiers: Verifiers) {
      const newest = Option.getOrNull(yield* tree.newest)
      const signed = newest === null ? null : yield* read(newest.note, verifiers)
      const size = signed?.size ?? 0
      if (size < history.size) {
        return yield* forked(
          `${history.size} events were signed before, but the database has only ${size} signed events: it is an older copy or was truncated`
        )
      }
      if (signed === null || newest === null) return { tree: empty, note: null } satisfies SignedTree
      const whole = yield* tree.treeOf(size, size)
      if (!equalHashes(root(sha256, whole), signed.root)) {
        return yield* forked(`The stored tree does not match the signed checkpoint of ${size} events`)
      }
      const start = yield* tree.treeOf(history.size, size)
      if (!equalHashes(root(sha256, start), history.root)) {
        return yield* forked(`The first ${history.size} events of the log differ from the events that were signed before`)
      }
      return { tree: whole, note: newest.note } satisfies SignedTree
    },
    Effect.catchTag("IncompleteTile", (tile) => Effect.fail(forked(tile.message)))
  )

  return { load, read }
})

/** Creates the functions that compare the newest events of the log with the signed tree. */
const makeComparison = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto
  const events = yield* EventStore
  const tree = yield* TreeStore

  // `surplus` is true if the stored tree has leaf hashes for positions at or after `size`.
  const findEnd = SqlSchema.findOne({
    Request: Schema.Int,
    Result: Schema.Struct({ head: Schema.BigInt, last: Schema.BigInt, unsigned_ms: Schema.BigInt, surplus: Schema.Boolean }),
    execute: (size) => sql`SELECT l.next_position AS head, end_of_log.last,
        coalesce(extract(epoch FROM newest.recorded_at - first.recorded_at) * 1000, 0)::bigint AS unsigned_ms,
        EXISTS (SELECT FROM vatproof.tiles t WHERE t.log_id = l.log_id AND t.level = 0 AND t.index >= ${BigInt(size)} / ${tileWidth}
          AND octet_length(t.hashes) > ${hashLength} * greatest(0, ${BigInt(size)} - t.index * ${tileWidth})) AS surplus
      FROM vatproof.logs l
      CROSS JOIN LATERAL (SELECT coalesce(max(position), -1) AS last FROM vatproof.events e WHERE e.log_id = l.log_id) end_of_log
      LEFT JOIN LATERAL (SELECT recorded_at FROM vatproof.events e
        WHERE e.log_id = l.log_id AND e.position = ${BigInt(size)} LIMIT 1) first ON true
      LEFT JOIN LATERAL (SELECT recorded_at FROM vatproof.events e
        WHERE e.log_id = l.log_id AND e.position = end_of_log.last LIMIT 1) newest ON true
      WHERE l.log_id = ${logId}`
  })
  const endAfter = (size: number) => findEnd(size).pipe(QueryPolicy.withRetry(retryFor))

  /**
   * Fails if signed events or newer checkpoints seem to be missing, or if the last signed events differ from the stored tree.
   * Compares at most the last 256 signed events; `audit verify` compares all events. The checkpoint of a new log proves at most
   * the event that opened it, so events after it are accepted only if `isKnown`: this machine has stored a checkpoint of the log.
   */
  const compare = Effect.fn("NotaryRefusals.compare")(function* ({ size }: Tree, isKnown: boolean) {
    const end = yield* endAfter(size)
    const length = Math.min(Number(end.head), Number(end.last) + 1)
    if (length < size) return yield* forked(`The log has ${length} events, but ${size} were signed: signed events are missing`)
    if (end.surplus)
      return yield* forked(
        `The stored tree is larger than the newest checkpoint of ${size} events: newer checkpoints are missing`
      )
    const unsigned = length - size
    if (size <= 1 && unsigned > 0 && !isKnown) {
      return yield* forked(
        `The only checkpoint in the database is that of the new log, but the log has ${length} events, and DATA_DIR has no checkpoint: restore DATA_DIR if it was lost; otherwise newer checkpoints are missing`
      )
    }
    if (unsigned > unsignedAtMost.events || Number(end.unsigned_ms) > Duration.toMillis(unsignedAtMost.time)) {
      return yield* forked(
        `The newest checkpoint has ${size} events, and the ${unsigned} events after it are more than ${unsignedAtMost.events} or span more than ${Duration.format(unsignedAtMost.time)}: newer checkpoints are missing, or the log was unsigned for a while`
      )
    }
    if (size === 0) return
    const index = Math.floor((size - 1) / tileWidth)
    const from = index * tileWidth
    const found = leafHashes(crypto, yield* events.read(from, size - from), { from, to: size })
    const hashes = yield* Effect.fromResult(found).pipe(Effect.mapError(({ message }) => forked(message)))
    const [tile = new Uint8Array()] = yield* tree.readTiles([{ level: 0, index, width: widthAt(size, 0, index) }])
    const signed = hashesIn(tile)
    const different = hashes.findIndex((hash, offset) => !equalHashes(hash, signed[offset] ?? new Uint8Array()))
    if (different !== -1) return yield* forked(`The event at position ${from + different} differs from the signed event`)
  })

  /**
   * Returns the size of a log without checkpoint. Fails unless the log is new: it has at most the event that opened it, and no stored
   * tree.
   */
  const requireNew = Effect.fn("NotaryRefusals.requireNew")(function* () {
    const { head, last, surplus } = yield* endAfter(0)
    const isNew = head === last + 1n && !surplus && head <= 1n
    if (isNew && (yield* events.read(0, 1)).every(({ type }) => type === LogOpened.type)) return Number(head)
    const count = Math.max(Number(head), Number(last) + 1)
    return yield* forked(`There are ${count} events and no checkpoint: the log was never signed, or its checkpoints are missing`)
  })

  return { compare, requireNew }
})

/** Returns the size and root of a tree. */
export const historyOf = (sha256: Sha256, tree: Tree): KnownHistory => ({ size: tree.size, root: root(sha256, tree) })
