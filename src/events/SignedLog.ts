/**
 * The log as far as it was signed, and what it must be before anything more is signed over it: the notary refuses to shrink the log, and
 * to fork it, that is to sign another history than it signed before.
 */
import { Effect, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { logId } from "#events/AppendCommand.ts"
import { EventStore } from "#events/EventStore.ts"
import * as Checkpoint from "#events/log/Checkpoint.ts"
import { LogCrypto } from "#events/log/LogCrypto.ts"
import { empty, equalHashes, type Hash, root, type Tree } from "#events/log/MerkleTree.ts"
import { leafHashes } from "#events/log/StoredLeaf.ts"
import type { Verifiers } from "#events/log/NoteKeys.ts"
import type { LogKeys } from "#events/LogSigner.ts"
import { hashesIn, tileWidth, widthAt } from "#events/log/Tiles.ts"
import * as StoreAccess from "#events/StoreAccess.ts"
import { TreeStore } from "#events/TreeStore.ts"

/** The log is not the one that was signed. Only an operator can say which of the two is right. */
export class LogForked extends Schema.TaggedError<LogForked>()("LogForked", { message: Schema.String }) {}

/** What is known of the log's history from before: its first `size` events have this root. */
export interface KnownHistory {
  readonly size: number
  readonly root: Hash
}

const patience = "3 seconds"

const forked = (message: string) => new LogForked({ message })

export const make = Effect.fnUntraced(function* (keys: LogKeys) {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* LogCrypto
  const events = yield* EventStore
  const tree = yield* TreeStore
  const { sha256 } = crypto

  const findEnd = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({ head: Schema.BigInt, last: Schema.BigInt }),
    execute: () => sql`SELECT next_position AS head,
      coalesce((SELECT max(position) FROM vatproof.events e WHERE e.log_id = l.log_id), -1) AS last
      FROM vatproof.logs l WHERE log_id = ${logId}`
  })

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
  const load = Effect.fn("SignedLog.load")(
    function* (known: KnownHistory, verifiers: Verifiers) {
      const newest = Option.getOrNull(yield* tree.newest)
      const signed = newest === null ? null : yield* read(newest.note, verifiers)
      const size = signed?.size ?? 0
      if (size < known.size) {
        return yield* forked(
          `${known.size} events were signed before, but the database knows of ${size} only: it is an older copy, or was cut`
        )
      }
      if (signed === null || newest === null) return { tree: empty, note: null }
      const whole = yield* tree.treeOf(size, size)
      if (!equalHashes(root(sha256, whole), signed.root)) {
        return yield* forked(`The stored tree is not the one that was signed with ${size} events`)
      }
      const start = yield* tree.treeOf(known.size, size)
      if (!equalHashes(root(sha256, start), known.root)) {
        return yield* forked(`The first ${known.size} events of the log are not those that were signed before`)
      }
      return { tree: whole, note: newest.note }
    },
    Effect.catchTag("IncompleteTile", (tile) => Effect.fail(forked(tile.message)))
  )

  /**
   * Whether the log still has the events that were signed, as far as can be told without reading all of it: its length, and the newest
   * of them against the tree. (`audit verify` reads all of it.)
   */
  const compare = Effect.fn("SignedLog.compare")(function* ({ size }: Tree) {
    const end = yield* findEnd(undefined).pipe(StoreAccess.patiently(patience))
    const length = Math.min(Number(end.head), Number(end.last) + 1)
    if (length < size) return yield* forked(`The log has ${length} events, but ${size} were signed: the rest is missing`)
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

  return { load, compare, read }
})
