/** Reads the stored Merkle tree: tiles and signed checkpoints (migrations/0006_notary.sql). */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { logId } from "#events/log/store/AppendCommand.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { hashLength, nodesOf, restore } from "#events/log/merkle/MerkleTree.ts"
import { type Tile, readNodes } from "#events/log/merkle/Tiles.ts"
import { elementType, sqlArray } from "#events/log/database/SqlArray.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"

const retryFor = "3 seconds"

/** A stored checkpoint; `size` is a copy of the size in the signed `note`. */
export interface StoredCheckpoint {
  readonly size: number
  readonly note: string
}

const CheckpointRow = Schema.Struct({ size: Schema.BigInt, note: Schema.String })
const checkpointOf = ({ note, size }: typeof CheckpointRow.Type): StoredCheckpoint => ({ size: Number(size), note })

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { sha256 } = yield* Crypto

  // LIMIT keeps the planner from choosing a join that reads all tiles.
  const findTiles = SqlSchema.findAll({
    Request: Schema.Struct({ levels: Schema.Array(Schema.Int), indexes: Schema.Array(Schema.Int) }),
    Result: Schema.Struct({ level: Schema.Int, index: Schema.BigInt, hashes: Schema.Uint8Array }),
    execute: ({ indexes, levels }) => sql`SELECT asked.level, asked.index, tile.hashes
      FROM unnest(${sqlArray(levels, elementType.int2)}, ${sqlArray(indexes.map(BigInt), elementType.int8)}) AS asked(level, index)
      CROSS JOIN LATERAL (SELECT t.hashes FROM vatproof.tiles t
        WHERE t.log_id = ${logId} AND t.level = asked.level AND t.index = asked.index LIMIT 1) AS tile`
  })

  const findNewest = SqlSchema.findOneOption({
    Request: Schema.Void,
    Result: CheckpointRow,
    execute: () => sql`SELECT size, note FROM vatproof.checkpoints WHERE log_id = ${logId} ORDER BY size DESC LIMIT 1`
  })

  const findFrom = SqlSchema.findAll({
    Request: Schema.Struct({ from: Schema.Int, limit: Schema.Int }),
    Result: CheckpointRow,
    execute: ({ from, limit }) => sql`SELECT size, note FROM vatproof.checkpoints
      WHERE log_id = ${logId} AND size >= ${from} ORDER BY size LIMIT ${limit}`
  })

  /** Returns the content of each requested tile, in the same order; empty for a missing tile. */
  const readTiles = Effect.fnUntraced(function* (tiles: ReadonlyArray<Tile>) {
    const requested = { levels: tiles.map(({ level }) => level), indexes: tiles.map(({ index }) => index) }
    const rows = yield* findTiles(requested).pipe(QueryPolicy.withRetry(retryFor))
    const byTile = new Map(rows.map(({ hashes, index, level }) => [`${level}/${index}`, hashes]))
    return tiles.map(
      ({ index, level, width }) => byTile.get(`${level}/${index}`)?.subarray(0, width * hashLength) ?? new Uint8Array()
    )
  })

  return {
    readTiles,
    /** Creates a function that reads nodes of the tree of `size` events. */
    readNodes: (size: number) => readNodes(sha256, size, readTiles),
    /** Returns the tree of the first `of` events, from the tiles of a log with `size` signed events. */
    treeOf: Effect.fnUntraced(function* (of: number, size: number) {
      const peaks = nodesOf({ from: 0, to: of })
      return restore(of, peaks.length === 0 ? [] : yield* readNodes(sha256, size, readTiles)(peaks))
    }),
    /** The newest checkpoint; none if the log was never signed. */
    newest: findNewest(undefined).pipe(QueryPolicy.withRetry(retryFor), Effect.map(Option.map(checkpointOf))),
    /** Returns up to `limit` checkpoints with at least `from` events, the smallest first. */
    checkpointsFrom: (from: number, limit: number) =>
      findFrom({ from, limit }).pipe(
        QueryPolicy.withRetry(retryFor),
        Effect.map((rows) => rows.map(checkpointOf))
      )
  }
})

export class TreeStore extends Context.Service<TreeStore, Effect.Success<typeof make>>()("vatproof/events/log/notary/TreeStore") {
  static readonly layer = Layer.effect(TreeStore, make)
}
