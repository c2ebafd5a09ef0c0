/**
 * Reads the data that a verification of the log compares: events in ranges of positions, the number of events, and rows that belong
 * to no event of the log.
 */
import { Effect, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { LogAdopted } from "#domain/log/LogAdopted.ts"
import { logStream } from "#domain/log/LogReadEvents.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import { elementType, sqlArray } from "#events/log/database/SqlArray.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import { StoredEvent } from "#events/log/store/StoredEvent.ts"

/** Time for which a query is retried, so that a verification of many minutes survives a restart of the database. */
const retryFor = "30 seconds"

export const make = Effect.map(SqlClient.SqlClient, (sql) => {
  const findEvents = SqlSchema.findAll({
    Request: Schema.Struct({ from: Schema.Int, to: Schema.Int }),
    Result: StoredEvent,
    execute: ({ from, to }) => sql`SELECT ${sql.literal(StoredEvent.columns)} FROM vatproof.events
      WHERE log_id = ${logId} AND position >= ${from} AND position < ${to} ORDER BY position`
  })

  const findWithDocuments = SqlSchema.findAll({
    Request: Schema.Struct({ from: Schema.Int, to: Schema.Int, types: Schema.Array(Schema.String) }),
    Result: StoredEvent,
    execute: ({ from, to, types }) => sql`SELECT ${sql.literal(StoredEvent.columns)} FROM vatproof.events
      WHERE log_id = ${logId} AND position >= ${from} AND position < ${to} AND (strpos(data, '"personal_sha256":') > 0 OR starts_with(type, 'PersonalData') OR type = ANY (${sqlArray(types, elementType.text)})
        OR position IN (SELECT position FROM vatproof.personal_documents WHERE log_id = ${logId} AND position >= ${from} AND position < ${to})) ORDER BY position`
  })

  const findHead = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({ head: Schema.BigInt }),
    execute: () => sql`SELECT coalesce((SELECT next_position FROM vatproof.logs WHERE log_id = ${logId}), 0) AS head`
  })

  const findStrangers = SqlSchema.findAll({
    Request: Schema.Int,
    Result: Schema.Struct({ log_id: Schema.Int, position: Schema.BigInt }),
    execute: (head) => sql`(SELECT log_id, position FROM vatproof.events WHERE log_id < ${logId} LIMIT 10)
      UNION ALL (SELECT log_id, position FROM vatproof.events WHERE log_id > ${logId} LIMIT 10)
      UNION ALL (SELECT log_id, position FROM vatproof.events WHERE log_id = ${logId} AND position >= ${head}
        AND position >= (SELECT next_position FROM vatproof.logs WHERE log_id = ${logId}) ORDER BY position LIMIT 10)`
  })

  const findAdoptions = SqlSchema.findAll({
    Request: Schema.Void,
    Result: Schema.Struct({ position: Schema.BigInt }),
    execute: () => sql`SELECT position FROM vatproof.events
      WHERE log_id = ${logId} AND stream_id = ${logStream} AND type = ${LogAdopted.type} ORDER BY version LIMIT 100`
  })

  const findForeign = SqlSchema.findAll({
    Request: Schema.Void,
    Result: Schema.Struct({ what: Schema.String, log_id: Schema.Int }),
    execute: () => sql`(SELECT 'tile' AS what, log_id FROM vatproof.tiles WHERE log_id < ${logId} LIMIT 1)
      UNION ALL (SELECT 'tile', log_id FROM vatproof.tiles WHERE log_id > ${logId} LIMIT 1)
      UNION ALL (SELECT 'checkpoint', log_id FROM vatproof.checkpoints WHERE log_id < ${logId} LIMIT 1)
      UNION ALL (SELECT 'checkpoint', log_id FROM vatproof.checkpoints WHERE log_id > ${logId} LIMIT 1)`
  })

  // A tile of level n contains nodes of tree level 8n: 256 nodes, or fewer at the right edge of the tree.
  const findSurplus = SqlSchema.findAll({
    Request: Schema.Void,
    Result: Schema.Struct({ level: Schema.Int, index: Schema.BigInt }),
    execute: () => sql`SELECT t.level, t.index
      FROM vatproof.tiles t, (SELECT coalesce(max(size), 0) AS size FROM vatproof.checkpoints WHERE log_id = ${logId}) signed
      WHERE t.log_id = ${logId}
        AND octet_length(t.hashes) > 32 * least(256, greatest(0, (CASE WHEN t.level < 8 THEN signed.size >> (8 * t.level) ELSE 0 END) - t.index * 256))
      ORDER BY t.level, t.index LIMIT 10`
  })

  return {
    events: (from: number, to: number) => findEvents({ from, to }).pipe(QueryPolicy.withRetry(retryFor)),
    /** Events in a range that have a personal document, that record the erasure, hold or release of a document, or whose type is in `types`. */
    eventsWithDocuments: (from: number, to: number, types: ReadonlyArray<string>) =>
      findWithDocuments({ from, to, types }).pipe(QueryPolicy.withRetry(retryFor)),
    /** The number of events according to the log's row in `vatproof.logs`. */
    head: Effect.suspend(() => findHead(undefined)).pipe(
      QueryPolicy.withRetry(retryFor),
      Effect.map(({ head }) => Number(head))
    ),
    /**
     * Up to 10 tiles with hashes that the newest checkpoint does not cover. The notary cannot continue a tree with such hashes.
     */
    surplus: Effect.suspend(() => findSurplus(undefined)).pipe(QueryPolicy.withRetry(retryFor)),
    /** Positions of up to 100 events that record an adoption of the log. */
    adoptions: Effect.suspend(() => findAdoptions(undefined)).pipe(
      QueryPolicy.withRetry(retryFor),
      Effect.map((rows) => rows.map((row) => Number(row.position)))
    ),
    /** Examples of tiles and checkpoints with the id of a log that does not exist. */
    foreign: Effect.suspend(() => findForeign(undefined)).pipe(QueryPolicy.withRetry(retryFor)),
    /**
     * Up to 30 events that do not belong to the log: events with the id of another log, or at a position after the end of the log.
     */
    strangers: (head: number) => findStrangers(head).pipe(QueryPolicy.withRetry(retryFor))
  }
})
