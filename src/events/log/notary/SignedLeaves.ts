/** Compares events with the leaves of the signed Merkle tree before the events are served as evidence. */
import { Effect, Result, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { Integrity } from "#domain/log/Integrity.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { equalHashes, hashLength, leafHash } from "#events/log/merkle/MerkleTree.ts"
import { leafOf } from "#events/log/notary/StoredLeaf.ts"
import { tileWidth } from "#events/log/merkle/Tiles.ts"
import { elementType, sqlArray } from "#events/log/database/SqlArray.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import type { StoredEvent } from "#events/log/store/StoredEvent.ts"

const retryFor = "3 seconds"

const Row = Schema.Struct({ position: Schema.BigInt, hash: Schema.NullOr(Schema.Uint8Array), is_signed: Schema.Boolean })

export const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto
  const integrity = yield* Integrity

  // One statement reads the tiles and the newest checkpoint, so that both come from the same snapshot of the database. LIMIT keeps
  // the planner from choosing a join that reads all tiles.
  const findLeaves = SqlSchema.findAll({
    Request: Schema.Array(Schema.BigInt),
    Result: Row,
    execute: (positions) => sql`SELECT asked.position, tile.hash, coalesce(asked.position < signed.size, false) AS is_signed
      FROM unnest(${sqlArray(positions, elementType.int8)}) AS asked(position)
      LEFT JOIN LATERAL (SELECT substr(t.hashes, (asked.position % ${tileWidth})::int * ${hashLength} + 1, ${hashLength}) AS hash
        FROM vatproof.tiles t WHERE t.log_id = ${logId} AND t.level = 0 AND t.index = asked.position / ${tileWidth} LIMIT 1) AS tile ON true
      LEFT JOIN LATERAL (SELECT c.size FROM vatproof.checkpoints c WHERE c.log_id = ${logId} ORDER BY c.size DESC LIMIT 1) AS signed ON true`
  })

  const isAsSigned = (event: StoredEvent, { hash, is_signed }: typeof Row.Type) => {
    if (hash === null || hash.length === 0) return !is_signed
    const leaf = leafOf(crypto, event)
    return Result.isSuccess(leaf) && equalHashes(leafHash(crypto.sha256, leaf.success), hash)
  }

  /**
   * Returns the events that differ from their signed leaves. Events that are not signed yet are accepted. The caller must limit the number of
   * events.
   */
  const altered = Effect.fnUntraced(function* <Event extends StoredEvent>(events: ReadonlyArray<Event>) {
    if (events.length === 0) return []
    const rows = yield* findLeaves(events.map(({ position }) => BigInt(position))).pipe(QueryPolicy.withRetry(retryFor))
    const byPosition = new Map(rows.map((row) => [Number(row.position), row]))
    return events.filter((event) => {
      const row = byPosition.get(event.position)
      return row === undefined || !isAsSigned(event, row)
    })
  })

  /** Reports an altered event and ends the request with EVIDENCE_ALTERED. */
  const refuseAltered = (position: number | bigint) =>
    integrity.refuse("event", `The event at position ${position} differs from the signed event`)

  /** Returns the events unchanged. The request fails with EVIDENCE_ALTERED if one of them is `altered`. */
  const verified = Effect.fnUntraced(function* <Event extends StoredEvent>(events: ReadonlyArray<Event>) {
    const [first] = yield* altered(events)
    if (first === undefined) return events
    return yield* refuseAltered(first.position)
  })

  return { altered, refuseAltered, verified }
})
