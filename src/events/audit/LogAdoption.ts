/**
 * Adopts a log: makes the notary continue a log that it refuses, after an operator has verified that log. The adoption rebuilds the
 * Merkle tree from the events, and stores the missing parts of the tree. Stored parts of the tree never change. The adoption fails
 * if the events contradict the stored tree or the newest checkpoint in the database.
 */
import { Effect, Option, Result, Schema } from "effect"
import { Hex } from "effect/encoding"
import { SqlClient, SqlSchema } from "effect/sql"
import { LogAdopted } from "#domain/log/LogAdopted.ts"
import { logStream } from "#domain/log/LogReadEvents.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import * as AuditReads from "#events/log/verify/AuditReads.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as Checkpoint from "#events/log/merkle/Checkpoint.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { append, empty, hashLength, type Node, root, type Tree } from "#events/log/merkle/MerkleTree.ts"
import { leafHashes } from "#events/log/notary/StoredLeaf.ts"
import { type Growth, growths, tileWidth } from "#events/log/merkle/Tiles.ts"
import type { LogKeys } from "#events/log/notary/LogSigner.ts"
import * as NotaryRefusals from "#events/log/notary/NotaryRefusals.ts"
import { elementType, sqlColumns } from "#events/log/database/SqlArray.ts"
import { TreeStore } from "#events/log/notary/TreeStore.ts"

/** The log cannot be adopted; the message says why. */
export class AdoptionRefused extends Schema.TaggedError<AdoptionRefused>()("AdoptionRefused", { message: Schema.String }) {}

const refused = (message: string) => new AdoptionRefused({ message })

/** Number of events that are read at once: the events of eight tiles. */
const batchSize = 8 * tileWidth

/** The beginning of a log: its first `events` events have this Merkle `root` (hex). */
export interface History {
  readonly events: number
  readonly root: string
}

/**
 * `loadSeen` returns the checkpoints that this machine stored outside the database. `replace` stores a new checkpoint in their
 * place, and keeps the old checkpoints under other names as evidence.
 */
export interface LogAdoptionOptions<E> {
  readonly keys: LogKeys
  readonly loadSeen: Effect.Effect<ReadonlyArray<NotaryRefusals.SeenCheckpoint>, E>
  readonly replace: (note: string) => Effect.Effect<void>
}

export const make = Effect.fnUntraced(function* <E>({ keys, loadSeen, replace }: LogAdoptionOptions<E>) {
  const crypto = yield* Crypto
  const { appendFact } = yield* EventStore
  const reads = yield* AuditReads.make
  const tree = yield* TreeStore
  const log = yield* NotaryRefusals.make(keys)
  const grow = yield* makeGrow
  const store = yield* makeStore(keys)
  const rootOf = (grown: Tree) => root(crypto.sha256, grown)

  /** Returns the reason why the notary refuses the log; none if the notary accepts the log. */
  const refusal = Effect.flatMap(loadSeen, (seen) =>
    log.recognise(seen).pipe(
      Effect.as(Option.none<string>()),
      Effect.catchTag("LogForked", ({ message }) => Effect.succeedSome(message))
    )
  )

  const historyIn = (note: string): Option.Option<History> =>
    Option.map(
      Result.getSuccess(Checkpoint.open(crypto, note, { origin: keys.name, verifiers: keys.verifiers })),
      ({ root, size }) => ({ events: size, root: Hex.encode(root) })
    )

  /**
   * The number of events and the root in the newest checkpoint of the database; null without a checkpoint. Fails if the events
   * contradict this checkpoint.
   */
  const newest = Effect.gen(function* () {
    const stored = Option.getOrNull(yield* tree.newest)
    if (stored === null) return null
    const history = Option.getOrNull(historyIn(stored.note))
    if (history === null) {
      return yield* refused(
        "The newest checkpoint in the database was signed by an unknown key: set NOTARY_KEY to that key, or add its public key after the new key"
      )
    }
    const grown = yield* grow(empty, history.events)
    if (Hex.encode(rootOf(grown)) === history.root) return history
    return yield* refused(
      `The events contradict the database's newest checkpoint of ${history.events} events: restore the signed events (docs/operations/runbooks/VatproofNotaryRefuses.md)`
    )
  })

  /** The number of events that the log has now, and the Merkle root over them. */
  const current = Effect.gen(function* () {
    const head = yield* reads.head
    return { events: head, root: Hex.encode(rootOf(yield* grow(empty, head))) } satisfies History
  })

  const adopt = Effect.fn("LogAdoption.adopt")(function* (adopted: History) {
    const before = yield* newest
    // All checks run before the event `LogAdopted` is appended, so that a refused adoption adds no event.
    yield* store.lock
    const verified = yield* grow(empty, adopted.events, store.compare)
    if (Hex.encode(rootOf(verified)) !== adopted.root)
      return yield* refused(`The first ${adopted.events} events do not have the root hash ${adopted.root}`)
    yield* store.refuseSurplus(adopted.events)
    const remembered = (yield* loadSeen).flatMap(({ note }) => Option.toArray(historyIn(note)))
    const { position } = yield* appendFact(logStream, LogAdopted.make({ adopted, newest: before, remembered }))
    const checkpoint = yield* store.signed(position + 1)
    yield* replace(checkpoint)
    return { position }
  })

  return { refusal, newest, current, adopt }
})

/**
 * Creates a function that extends the tree `start` with the events up to position `to` (exclusive). The function reads `batchSize`
 * events at a time, and passes the new nodes of the tree to `visit` after each read.
 */
const makeGrow = Effect.gen(function* () {
  const crypto = yield* Crypto
  const reads = yield* AuditReads.make
  return Effect.fnUntraced(function* <E = never, R = never>(
    start: Tree,
    to: number,
    visit?: (nodes: ReadonlyArray<Node>) => Effect.Effect<void, E, R>
  ) {
    let grown = start
    while (grown.size < to) {
      const range = { from: grown.size, to: Math.min(to, grown.size + batchSize) }
      const leaves = leafHashes(crypto, yield* reads.events(range.from, range.to), range)
      const hashes = yield* Effect.fromResult(leaves).pipe(Effect.mapError(({ message }) => refused(message)))
      const added = append(crypto.sha256, grown, hashes)
      if (visit !== undefined) yield* visit(added.nodes)
      grown = added.tree
    }
    return grown
  })
})

const { bytea, int2, int8 } = elementType

/**
 * Creates the functions that compare the stored tree with the events, complete it, and store a checkpoint. They never change a
 * stored hash or a stored checkpoint.
 */
const makeStore = Effect.fnUntraced(function* (keys: LogKeys) {
  const sql = yield* SqlClient.SqlClient
  const { sha256 } = yield* Crypto
  const tree = yield* TreeStore
  const grow = yield* makeGrow

  /** Blocks the notary of every replica. Only the tables' owner may take this lock. */
  const lock = sql`SELECT holder FROM vatproof.notaries WHERE log_id = ${logId} FOR UPDATE`

  const findSurplus = SqlSchema.findAll({
    Request: Schema.Int,
    Result: Schema.Struct({ index: Schema.BigInt }),
    execute: (events) => sql`SELECT t.index FROM vatproof.tiles t WHERE t.log_id = ${logId} AND t.level = 0
      AND t.index >= ${BigInt(events)} / ${tileWidth}
      AND octet_length(t.hashes) > ${hashLength} * greatest(0, ${BigInt(events)} - t.index * ${tileWidth}) LIMIT 1`
  })
  const refuseSurplus = Effect.fnUntraced(function* (events: number) {
    const [surplus] = yield* findSurplus(events)
    if (surplus === undefined) return
    return yield* refused(
      `The stored tree has more leaves in tile 0/${surplus.index} than the log has events: restore the missing events`
    )
  })

  /**
   * Returns the stored tiles that lack the hash of at least one of these nodes, with the missing hashes added. Fails if a stored
   * hash differs from the hash of its node.
   */
  const missing = Effect.fnUntraced(function* (nodes: ReadonlyArray<Node>) {
    const updates = growths(nodes)
    const stored = yield* tree.readTiles(updates.map(({ index, level }) => ({ index, level, width: tileWidth })))
    const tiles = yield* Effect.forEach(updates, (growth, i) =>
      Effect.fromResult(completed(growth, stored[i] ?? new Uint8Array()))
    )
    return tiles.filter((tile) => tile !== null)
  })

  const complete = Effect.fnUntraced(function* (nodes: ReadonlyArray<Node>) {
    const tiles = (yield* missing(nodes)).map((tile) => ({ ...tile, index: BigInt(tile.index) }))
    if (tiles.length === 0) return
    const columns = sqlColumns(tiles, [
      ["level", int2],
      ["index", int8],
      ["hashes", bytea]
    ])
    yield* sql.unsafe(upsert, [logId, ...columns])
  })

  /**
   * Stores the missing parts of the tree over the first `size` events. Then signs and stores a checkpoint of this size, and returns
   * its text.
   */
  const signed = (size: number) =>
    sql.withTransaction(
      Effect.gen(function* () {
        yield* lock
        const grown = yield* grow(empty, size, complete)
        const history = NotaryRefusals.historyOf(sha256, grown)
        const note = yield* Effect.fromResult(Checkpoint.sign({ origin: keys.name, ...history, extensions: [] }, keys.signers))
        yield* sql`INSERT INTO vatproof.checkpoints (log_id, size, note) VALUES (${logId}, ${BigInt(size)}, ${note})`
        return note
      })
    )

  return { lock, refuseSurplus, compare: (nodes: ReadonlyArray<Node>) => Effect.asVoid(missing(nodes)), signed }
})

const upsert = `INSERT INTO vatproof.tiles (log_id, level, index, hashes)
  SELECT $1::smallint, level, index, hashes FROM unnest($2, $3, $4) AS t(level, index, hashes)
  ON CONFLICT (log_id, level, index) DO UPDATE SET hashes = excluded.hashes`

/**
 * Returns the tile with the hashes of the growth added; null if the tile already has these hashes. Fails if a stored hash differs
 * from the growth.
 */
const completed = ({ hashes, index, level, offset }: Growth, stored: Uint8Array) => {
  const start = offset * hashLength
  const existing = stored.subarray(start, start + hashes.length)
  if (!isPrefix(existing, hashes)) {
    return Result.fail(
      refused(
        `The stored tree contradicts the events in tile ${level}/${index}: the tree was altered, and an administrator must remove it first`
      )
    )
  }
  if (existing.length === hashes.length) return Result.succeed(null)
  return Result.succeed({ level, index, hashes: Uint8Array.of(...stored.subarray(0, start), ...hashes) })
}

const isPrefix = (start: Uint8Array, whole: Uint8Array) => start.every((byte, i) => byte === whole[i])
