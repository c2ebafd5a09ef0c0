/**
 * The log as far as it was signed, and what it must be before anything more is signed over it: the notary refuses to shrink the log, to fork
 * it, that is to sign another history than it signed before, and to sign a history that it does not know.
 */
import { Duration, Effect, Option, Ref, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { logId } from "#events/store/AppendCommand.ts"
import { EventStore } from "#events/store/EventStore.ts"
import * as Checkpoint from "#events/merkle/Checkpoint.ts"
import { Crypto, type Sha256 } from "#domain/kernel/Crypto.ts"
import { empty, equalHashes, type Hash, hashLength, root, type Tree } from "#events/merkle/MerkleTree.ts"
import { leafHashes } from "#events/notary/StoredLeaf.ts"
import type { Verifiers } from "#events/merkle/NoteKeys.ts"
import type { LogKeys } from "#events/notary/LogSigner.ts"
import { hashesIn, tileWidth, widthAt } from "#events/merkle/Tiles.ts"
import * as QueryPolicy from "#events/database/QueryPolicy.ts"
import { TreeStore } from "#events/notary/TreeStore.ts"

/** The log is not the one that was signed. Only an operator can say which of the two is right. */
export class LogForked extends Schema.TaggedError<LogForked>()("LogForked", { message: Schema.String }) {}

/** A checkpoint that is kept outside the database, and where. */
export interface SeenCheckpoint {
  readonly note: string
  readonly at: string
}

/** What is known of the log's history from before: its first `size` events have this root. */
interface KnownHistory {
  readonly size: number
  readonly root: Hash
}

/** The signed tree, and the newest checkpoint; none of a log that has not begun. */
interface SignedTree {
  readonly tree: Tree
  readonly note: string | null
}

/**
 * A notary leaves some seconds unsigned when it dies. Events of a longer time after the newest checkpoint are a history that it does not know:
 * checkpoints were removed, or the log was not signed for a while.
 */
const unsignedAtMost = Duration.hours(1)

const patience = "3 seconds"

const forked = (message: string) => new LogForked({ message })

export const make = Effect.fnUntraced(function* (keys: LogKeys) {
  const crypto = yield* Crypto
  const { sha256 } = crypto
  const { load, read } = yield* makeLoad(keys)
  const { compare, requireNew } = yield* makeComparison

  // Who has a former key could otherwise sign another history with it, and have that one signed with ours.
  const isOurs = (note: string) => Checkpoint.signersOf(crypto, note, keys.signers).length > 0
  const counting = yield* Ref.make<Verifiers>(keys.verifiers)
  const loadFrom = Effect.fnUntraced(function* (known: KnownHistory) {
    const loaded = yield* load(known, yield* Ref.get(counting))
    if (loaded.note !== null && isOurs(loaded.note)) yield* Ref.set(counting, keys.signers)
    return loaded
  })
  const loadSeen = ({ at, note }: SeenCheckpoint) =>
    read(note).pipe(
      Effect.flatMap(loadFrom),
      Effect.catchTag("LogForked", ({ message }) => Effect.fail(forked(`${message} (this machine knows it from ${at})`)))
    )

  return {
    /**
     * The signed log, if it is what it was: it has every checkpoint in `seen`, which are the newest that this machine knows, one for each key.
     * Without a note the log is empty and was never signed.
     */
    recognise: Effect.fn("LogConsistency.recognise")(function* (seen: ReadonlyArray<SeenCheckpoint>) {
      yield* Ref.set(counting, seen.some(({ note }) => isOurs(note)) ? keys.signers : keys.verifiers)
      const loaded = yield* Effect.forEach(seen, loadSeen)
      const found = loaded.at(-1) ?? (yield* loadFrom(historyOf(sha256, empty)))
      yield* found.note === null ? requireNew() : compare(found.tree)
      return found
    }),
    /** The signed log now, if it went on from a tree that was signed. */
    follow: (tree: Tree) => loadFrom(historyOf(sha256, tree)),
    /** From now on the signatures of former keys do not count. */
    trustSigners: Ref.set(counting, keys.signers)
  }
})

/** The signed tree as the database has it. */
const makeLoad = Effect.fnUntraced(function* (keys: LogKeys) {
  const crypto = yield* Crypto
  const tree = yield* TreeStore
  const { sha256 } = crypto

  /** What a checkpoint says, if one of the log's keys signed it. */
  const read = (note: string, verifiers: Verifiers = keys.verifiers) =>
    Effect.fromResult(Checkpoint.open(crypto, note, { origin: keys.name, verifiers })).pipe(
      Effect.mapError(({ message }) =>
        forked(
          `A checkpoint was not signed by the notary's key for ${keys.name} (${message}): give the service the key that did, or its public key beside the new one, which counts until the new one has signed`
        )
      )
    )

  /**
   * The signed tree, if it is what its newest checkpoint says, one of `verifiers` has signed that, and it begins with the history that is
   * known already.
   */
  const load = Effect.fn("LogConsistency.load")(
    function* (known: KnownHistory, verifiers: Verifiers) {
      const newest = Option.getOrNull(yield* tree.newest)
      const signed = newest === null ? null : yield* read(newest.note, verifiers)
      const size = signed?.size ?? 0
      if (size < known.size) {
        return yield* forked(
          `${known.size} events were signed before, but the database knows of ${size} only: it is an older copy, or was cut`
        )
      }
      if (signed === null || newest === null) return { tree: empty, note: null } satisfies SignedTree
      const whole = yield* tree.treeOf(size, size)
      if (!equalHashes(root(sha256, whole), signed.root)) {
        return yield* forked(`The stored tree is not the one that was signed with ${size} events`)
      }
      const start = yield* tree.treeOf(known.size, size)
      if (!equalHashes(root(sha256, start), known.root)) {
        return yield* forked(`The first ${known.size} events of the log are not those that were signed before`)
      }
      return { tree: whole, note: newest.note } satisfies SignedTree
    },
    Effect.catchTag("IncompleteTile", (tile) => Effect.fail(forked(tile.message)))
  )

  return { load, read }
})

/** The events beside the signed tree. */
const makeComparison = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto
  const events = yield* EventStore
  const tree = yield* TreeStore

  // `surplus` is a tile of leaves with more than `size` events have.
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
  const endAfter = (size: number) => findEnd(size).pipe(QueryPolicy.withRetry(patience))

  /**
   * Whether the log still has the events that were signed, as far as can be told without reading all of it: its length, and the newest
   * of them against the tree. (`audit verify` reads all of it.)
   */
  const compare = Effect.fn("LogConsistency.compare")(function* ({ size }: Tree) {
    const end = yield* endAfter(size)
    const length = Math.min(Number(end.head), Number(end.last) + 1)
    if (length < size) return yield* forked(`The log has ${length} events, but ${size} were signed: the rest is missing`)
    if (end.surplus)
      return yield* forked(`The stored tree has more than the ${size} events of the newest checkpoint: newer ones are missing`)
    if (Number(end.unsigned_ms) > Duration.toMillis(unsignedAtMost)) {
      return yield* forked(
        `The newest checkpoint has ${size} events, and the ${length - size} after it are of more than ${Duration.format(unsignedAtMost)}: newer checkpoints are missing, or the log was not signed for a while`
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
    if (different !== -1) return yield* forked(`The event at position ${from + different} is not the one that was signed`)
  })

  /** Without any checkpoint a log can only be new. */
  const requireNew = Effect.fn("LogConsistency.requireNew")(function* () {
    const { head, last, surplus } = yield* endAfter(0)
    if (head === 0n && last === -1n && !surplus) return
    const events = Math.max(Number(head), Number(last) + 1)
    return yield* forked(
      `There are ${events} events and no checkpoint: the log was not signed so far, or its checkpoints are missing`
    )
  })

  return { compare, requireNew }
})

/** How many events a tree has, and their root. */
export const historyOf = (sha256: Sha256, tree: Tree): KnownHistory => ({ size: tree.size, root: root(sha256, tree) })
