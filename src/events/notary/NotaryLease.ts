/** What the notary writes: its place among the replicas, and what it signed (migrations/0006_notary.sql). */
import { Effect, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { logId } from "#events/store/AppendCommand.ts"
import type { Growth } from "#events/merkle/Tiles.ts"
import { elementType, sqlColumns } from "#events/database/SqlArray.ts"
import * as QueryPolicy from "#events/database/QueryPolicy.ts"

/** Whether the caller has the notary's place, how many events are signed, and how many there are. */
export interface NotaryLease {
  readonly granted: boolean
  readonly size: number
  readonly head: number
}

/** A signed checkpoint of `size` events, and what the tiles grow by since the one of `from` events. -1 stands for none: the first checkpoint is that of the empty log. */
export interface SignedUpdate {
  readonly from: number
  readonly size: number
  readonly note: string
  readonly growths: ReadonlyArray<Growth>
}

const patience = "3 seconds"

const { bytea, int2, int4, int8 } = elementType

const notarizeStatement = "SELECT vatproof.notarize($1::smallint, $2, $3, $4, $5, $6, $7, $8) AS stored"

/** `holder` is the replica's own id. */
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
    /** Takes the place, or keeps it, for `leaseMs`. */
    claim: (leaseMs: number) =>
      findPlace(leaseMs).pipe(
        QueryPolicy.withRetry(patience),
        Effect.map(({ granted, head, size }): NotaryLease => ({ granted, size: Number(size), head: Number(head) }))
      ),
    /** Leaves the place to another replica at once. */
    release: sql`SELECT vatproof.release_notary(${logId}::smallint, ${holder}::uuid)`.pipe(QueryPolicy.withRetry("0 millis")),
    /**
     * False if the newest checkpoint is not that of `from` events any more: then nothing was stored. So it is too when the answer to a
     * first try was lost: the next turn sees what became of it.
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
        QueryPolicy.withRetry(patience),
        Effect.map(({ stored }) => stored)
      )
    }
  }
})
