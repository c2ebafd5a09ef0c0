/** Claims the lease of the notary, and stores signed checkpoints and tiles (migrations/functions/notary.sql). */
import { Effect, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { logId } from "#events/log/store/AppendCommand.ts"
import type { Growth } from "#events/log/merkle/Tiles.ts"
import { elementType, sqlColumns } from "#events/log/database/SqlArray.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"

/** The result of a claim: `granted` is true if this replica holds the lease. The log has `head` events, of which `size` are signed. */
export interface NotaryLease {
  readonly granted: boolean
  readonly size: number
  readonly head: number
}

/**
 * A signed checkpoint of `size` events, and the hashes that were added to each tile since the checkpoint of `from` events. `from` is -1
 * for the first checkpoint, which covers at most the event that opened the log.
 */
export interface SignedUpdate {
  readonly from: number
  readonly size: number
  readonly note: string
  readonly growths: ReadonlyArray<Growth>
}

const retryFor = "3 seconds"

const { bytea, int2, int4, int8 } = elementType

const notarizeStatement = "SELECT vatproof.notarize($1::smallint, $2, $3, $4, $5, $6, $7, $8) AS stored"

/** Creates the functions that claim and release the lease. `holder` is the id of this replica. */
export const make = Effect.fnUntraced(function* (holder: string) {
  const sql = yield* SqlClient.SqlClient

  const findPlace = SqlSchema.findOne({
    Request: Schema.Int,
    Result: Schema.Struct({ granted: Schema.Boolean, size: Schema.BigInt, head: Schema.BigInt }),
    execute: (leaseMs) =>
      sql`SELECT granted, size, head FROM vatproof.claim_notary(${logId}::smallint, ${holder}::uuid, ${leaseMs}::bigint)`
  })

  const store = SqlSchema.findOne({
    Request: Schema.Array(Schema.Unknown),
    Result: Schema.Struct({ stored: Schema.Boolean }),
    execute: (parameters) => sql.unsafe(notarizeStatement, parameters)
  })

  return {
    /** Acquires or renews the lease for `leaseMs`. */
    claim: (leaseMs: number) =>
      findPlace(leaseMs).pipe(
        QueryPolicy.withRetry(retryFor),
        Effect.map(({ granted, head, size }): NotaryLease => ({ granted, size: Number(size), head: Number(head) }))
      ),
    /** Releases the lease, so that another replica can acquire it at once. */
    release: sql`SELECT vatproof.release_notary(${logId}::smallint, ${holder}::uuid)`.pipe(QueryPolicy.withRetry("0 millis")),
    /**
     * Stores a checkpoint and its tiles, and returns true. Returns false and stores nothing if the newest checkpoint does not have
     * `from` events. This happens, for example, if an earlier attempt stored the checkpoint but its response was lost.
     */
    notarize: ({ from, growths, note, size }: SignedUpdate) => {
      const rows = growths.map(({ hashes, index, level, offset }) => ({ level, index: BigInt(index), offset, hashes }))
      const nodes = sqlColumns(rows, [
        ["level", int2],
        ["index", int8],
        ["offset", int4],
        ["hashes", bytea]
      ])
      return store([logId, BigInt(from), BigInt(size), note, ...nodes]).pipe(
        QueryPolicy.withRetry(retryFor),
        Effect.map(({ stored }) => stored)
      )
    }
  }
})
