/**
 * Reads the data that a verification of the log compares: events and personal documents in ranges of positions, the number of events,
 * and rows that do not belong to the log.
 */
import { Effect, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { LogAdopted } from "#domain/log/LogAdopted.ts"
import { logStream } from "#domain/log/LogReadEvents.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import { Int8 } from "#events/log/database/Rows.ts"
import { elementType, sqlArray } from "#events/log/database/SqlArray.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import { StoredEvent } from "#events/log/store/StoredEvent.ts"

/** Time for which a query is retried, so that a verification of many minutes survives a restart of the database. */
const retryFor = "30 seconds"

const Range = Schema.Struct({ from: Schema.Int, to: Schema.Int })

/**
 * A row in `vatproof.personal_documents`. `document` is null after the erasure. `retainUntil` is the end of the document's
 * retention (UTC with milliseconds).
 */
const DocumentRow = Schema.Struct({
  position: Int8,
  document: Schema.NullOr(Schema.String),
  isHeld: Schema.Boolean,
  changedBy: Schema.NullOr(Int8),
  retainUntil: Schema.String
})
export type DocumentRow = typeof DocumentRow.Type

/** SQL: up to `most` rows of a table with a smaller log id, and as many with a greater one. */
const ofOtherLogs = (what: string, table: string, position: string, most: number) =>
  ["<", ">"].map(
    (side) =>
      `(SELECT '${what}' AS what, log_id AS "logId", ${position} AS position FROM vatproof.${table} WHERE log_id ${side} ${logId} LIMIT ${most})`
  )

/** SQL: up to 40 rows of a table that belong to another log, or to a position outside of the log. `$1` is its number of events. */
const outsideOfLog = (what: string, table: string) => [
  ...ofOtherLogs(what, table, "position", 10),
  `(SELECT '${what}', log_id, position FROM vatproof.${table} WHERE log_id = ${logId} AND position < 0 LIMIT 10)`,
  `(SELECT '${what}', log_id, position FROM vatproof.${table} WHERE log_id = ${logId} AND position >= $1
    AND position >= (SELECT next_position FROM vatproof.logs WHERE log_id = ${logId}) ORDER BY position LIMIT 10)`
]

const strays = [
  ...ofOtherLogs("a tile", "tiles", "NULL::bigint", 1),
  ...ofOtherLogs("a checkpoint", "checkpoints", "NULL::bigint", 1),
  ...outsideOfLog("an event", "events"),
  ...outsideOfLog("a personal document", "personal_documents")
].join(" UNION ALL ")

export const make = Effect.map(SqlClient.SqlClient, (sql) => {
  const findEvents = SqlSchema.findAll({
    Request: Range,
    Result: StoredEvent,
    execute: ({ from, to }) => sql`SELECT ${sql.literal(StoredEvent.columns)} FROM vatproof.events
      WHERE log_id = ${logId} AND position >= ${from} AND position < ${to} ORDER BY position`
  })

  const findWithDocuments = SqlSchema.findAll({
    Request: Schema.Struct({ ...Range.fields, types: Schema.Array(Schema.String) }),
    Result: StoredEvent,
    execute: ({ from, to, types }) => sql`SELECT ${sql.literal(StoredEvent.columns)} FROM vatproof.events
      WHERE log_id = ${logId} AND position >= ${from} AND position < ${to} AND (strpos(data, '"personal_sha256":') > 0 OR starts_with(type, 'PersonalData') OR type = ANY (${sqlArray(types, elementType.text)})
        OR position IN (SELECT position FROM vatproof.personal_documents WHERE log_id = ${logId} AND position >= ${from} AND position < ${to})) ORDER BY position`
  })

  const findHead = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({ head: Int8 }),
    execute: () => sql`SELECT coalesce((SELECT next_position FROM vatproof.logs WHERE log_id = ${logId}), 0) AS head`
  })

  const findAdoptions = SqlSchema.findAll({
    Request: Schema.Void,
    Result: Schema.Struct({ position: Int8 }),
    execute: () => sql`SELECT position FROM vatproof.events
      WHERE log_id = ${logId} AND stream_id = ${logStream} AND type = ${LogAdopted.type} ORDER BY version LIMIT 100`
  })

  // A tile of level n contains nodes of tree level 8n: 256 nodes, or fewer at the right edge of the tree.
  const findSurplus = SqlSchema.findAll({
    Request: Schema.Void,
    Result: Schema.Struct({ level: Schema.Int, index: Int8 }),
    execute: () => sql`SELECT t.level, t.index
      FROM vatproof.tiles t, (SELECT coalesce(max(size), 0) AS size FROM vatproof.checkpoints WHERE log_id = ${logId}) signed
      WHERE t.log_id = ${logId}
        AND octet_length(t.hashes) > 32 * least(256, greatest(0, (CASE WHEN t.level < 8 THEN signed.size >> (8 * t.level) ELSE 0 END) - t.index * 256))
      ORDER BY t.level, t.index LIMIT 10`
  })

  const findDocuments = SqlSchema.findAll({
    Request: Range,
    Result: DocumentRow,
    execute: ({ from, to }) => sql`SELECT position, document, is_held AS "isHeld", changed_by AS "changedBy",
        coalesce(to_char(retain_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'infinity') AS "retainUntil"
      FROM vatproof.personal_documents WHERE log_id = ${logId} AND position >= ${from} AND position < ${to} ORDER BY position`
  })

  const findStrays = SqlSchema.findAll({
    Request: Schema.Int,
    Result: Schema.Struct({ what: Schema.String, logId: Schema.Int, position: Schema.NullOr(Int8) }),
    execute: (head) => sql.unsafe(strays, [head])
  })

  return {
    events: (from: number, to: number) => findEvents({ from, to }).pipe(QueryPolicy.withRetry(retryFor)),
    /** Events in a range that have a personal document, that record the erasure, hold or release of a document, or whose type is in `types`. */
    eventsWithDocuments: (from: number, to: number, types: ReadonlyArray<string>) =>
      findWithDocuments({ from, to, types }).pipe(QueryPolicy.withRetry(retryFor)),
    /** The number of events according to the log's row in `vatproof.logs`. */
    head: Effect.suspend(() => findHead(undefined)).pipe(
      QueryPolicy.withRetry(retryFor),
      Effect.map(({ head }) => head)
    ),
    /**
     * Up to 10 tiles with hashes that the newest checkpoint does not cover. The notary cannot continue a tree with such hashes.
     */
    surplus: Effect.suspend(() => findSurplus(undefined)).pipe(QueryPolicy.withRetry(retryFor)),
    /** Positions of up to 100 events that record an adoption of the log. */
    adoptions: Effect.suspend(() => findAdoptions(undefined)).pipe(
      QueryPolicy.withRetry(retryFor),
      Effect.map((rows) => rows.map(({ position }) => position))
    ),
    /** Personal documents of the events at positions `from` (inclusive) to `to` (exclusive), by position. */
    documents: (from: number, to: number) =>
      findDocuments({ from, to }).pipe(
        QueryPolicy.withRetry(retryFor),
        Effect.map((rows): ReadonlyMap<number, DocumentRow> => new Map(rows.map((row) => [row.position, row])))
      ),
    /** Examples of tiles, checkpoints, events and personal documents that do not belong to the log of `head` events. */
    strays: (head: number) => findStrays(head).pipe(QueryPolicy.withRetry(retryFor))
  }
})
