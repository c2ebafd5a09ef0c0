/**
 * Finds the events that match an auditor's filter. A search by positions and times alone reads the log itself. Every other search
 * uses indexes, such as the projection `vatproof.event_index`.
 */
import { DateTime, Effect, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import type { Fragment } from "effect/sql/Statement"
import type { AuditFilter } from "#domain/audit/AuditTrail.ts"
import { Integrity } from "#domain/log/Integrity.ts"
import { receiptStream } from "#domain/receipts/Receipt.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import { eventIndex } from "#events/audit/EventIndex.ts"
import { columnsFor } from "#events/log/database/Rows.ts"
import { elementType, sqlArray } from "#events/log/database/SqlArray.ts"
import type { KeyFacts } from "#events/audit/ExportedKeys.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import { StoredEvent } from "#events/log/store/StoredEvent.ts"

const retryFor = "5 seconds"

const KeyRow = Schema.Struct({ keyId: Schema.String, accountId: Schema.String, prefix: Schema.String })

/** The type of nearly all events. The indexes by type, account and key omit these events (migrations/projections.sql). */
const commonest = "VatIdVerified"

/**
 * Creates a function that converts a filter to one or two queries. Each query returns up to `limit` positions of matching events.
 * It considers only the positions of the common table expression `span`.
 */
const makeQuestions = (sql: SqlClient.SqlClient) => {
  const common = sql.literal(`type = '${commonest}'`)
  const rare = sql.literal(`type <> '${commonest}'`)

  /**
   * Returns a condition on a column that keeps the planner from using the index of this column. The planner then uses the index of
   * another column, which matches fewer events.
   */
  const unindexed = (column: string, value: string | null) =>
    value === null ? [] : [sql`${sql.literal(column)}::text || '' = ${value}`]

  /**
   * Reads the event index in the order of positions, and keeps the events that meet the condition. Nearly all events must meet it;
   * otherwise the query would be slow.
   */
  const inSpan = (condition: Fragment, limit: number) =>
    sql`SELECT position FROM vatproof.event_index
      WHERE log_id = ${logId} AND position >= (SELECT low FROM span) AND position < (SELECT high FROM span) AND ${condition}
      ORDER BY position LIMIT ${limit}`

  /**
   * Reads the index by `column` and position. The query compares and orders by both columns, so that the planner uses this index.
   * With only an equality on `column`, the planner could read every position of `span` instead.
   */
  const inIndex = (column: string, value: Fragment, conditions: ReadonlyArray<Fragment>, limit: number) => {
    const name = sql.literal(column)
    return sql`SELECT position FROM vatproof.event_index
      WHERE ${sql.and([
        sql`log_id = ${logId} AND ${name} IS NOT NULL`,
        sql`(${name}, position) >= (${value}, (SELECT low FROM span)) AND (${name}, position) < (${value}, (SELECT high FROM span))`,
        ...conditions
      ])}
      ORDER BY ${name}, position LIMIT ${limit}`
  }

  /**
   * Finds `VatIdVerified` events in the streams of API keys. Reads each stream version by version, which is also the order of
   * positions. With one condition for a whole range of versions, the planner could read and sort the whole stream.
   */
  const inStreams = (keys: ReadonlyArray<Fragment>, limit: number) =>
    sql`SELECT found.position FROM vatproof.api_keys k, LATERAL (SELECT 'key-' || k.key_id::text AS id) stream, LATERAL (
        SELECT event.position FROM (SELECT generate_series(
            vatproof.version_at(${logId}::smallint, stream.id, (SELECT low FROM span)),
            vatproof.version_at(${logId}::smallint, stream.id, (SELECT high FROM span)) - 1) AS version) next,
          LATERAL (SELECT position, type FROM vatproof.events
            WHERE log_id = ${logId} AND stream_id = stream.id AND version = next.version LIMIT 1) event
        WHERE ${common} LIMIT ${limit}) found
      WHERE ${sql.and(keys)}`

  /** Returns SQL conditions that select the API key of the filter, or all API keys of the filter's account. */
  const keysOf = ({ accountId, keyId }: AuditFilter) => {
    if (keyId !== null) return [sql`k.key_id = ${keyId}::uuid`, ...unindexed("k.account_id", accountId)]
    return accountId === null ? [] : [sql`k.account_id = ${accountId}::uuid`]
  }

  /**
   * Returns the query for events of all types except `VatIdVerified`. The query uses the index with the fewest matching events: the
   * index by API key, else the index by account, else the index by event type.
   */
  const rarer = ({ accountId, keyId, type }: AuditFilter, limit: number) => {
    const ofType = unindexed("type", type)
    if (keyId !== null) {
      return [inIndex("key_id", sql`${keyId}::uuid`, [rare, ...unindexed("account_id", accountId), ...ofType], limit)]
    }
    if (accountId !== null) return [inIndex("account_id", sql`${accountId}::uuid`, [rare, ...ofType], limit)]
    return type === null ? [] : [inIndex("type", sql`${type}::text`, [rare], limit)]
  }

  return (filter: AuditFilter, limit: number): ReadonlyArray<Fragment> => {
    const { accountId, keyId, receiptId, type, vatId } = filter
    if (receiptId !== null) {
      const otherConditions = [
        ...unindexed("account_id", accountId),
        ...unindexed("key_id", keyId),
        ...unindexed("type", type),
        ...unindexed("vat_id", vatId)
      ]
      return [inIndex("receipt_id", sql`${receiptId}::text`, otherConditions, limit)]
    }
    if (vatId !== null) {
      return [
        sql`SELECT position FROM vatproof.positions_of_vat_id(${logId}::smallint, ${vatId}, ${accountId}::uuid, ${keyId}::uuid, ${type}::text,
          (SELECT low FROM span), (SELECT high FROM span), ${limit}::int) AS position`
      ]
    }
    const keys = keysOf(filter)
    return [
      ...(type === commonest ? [] : rarer(filter, limit)),
      ...(type === commonest || type === null ? [keys.length === 0 ? inSpan(common, limit) : inStreams(keys, limit)] : [])
    ]
  }
}

/**
 * Creates a function that returns the SQL statement of a search. The statement finds up to `limit` events that match the filter, at
 * position `after` or later.
 */
const makeSelect = (sql: SqlClient.SqlClient) => {
  const questions = makeQuestions(sql)
  const positionAt = (moment: DateTime.Utc) => sql`vatproof.position_at(${logId}::smallint, ${DateTime.toDateUtc(moment)})`
  const columns = sql.literal(StoredEvent.columns)
  const names = sql.literal(StoredEvent.columnsOf("event"))

  /** Returns the lowest position that the search reads: `after`, or a later position if the filter has a start time. */
  const lowest = ({ from }: AuditFilter, after: number) =>
    from === null ? sql`${after}::bigint` : sql`greatest(${after}::bigint, ${positionAt(from)})`

  /**
   * The position up to which the event index contains the log. A search ends there, because later events are not in the index yet.
   */
  const followed = sql`(SELECT position FROM vatproof.projections WHERE log_id = ${logId} AND name = ${eventIndex})`
  const highest = ({ to }: AuditFilter) => (to === null ? followed : sql`least(${followed}, ${positionAt(to)})`)

  const noPosition = sql`SELECT NULL::bigint AS position LIMIT 0`

  /**
   * Reads the log one position at a time. With one condition for a whole range of positions, the planner could read and sort the
   * whole log.
   */
  const inLog = ({ to }: AuditFilter, limit: number) => {
    const end = to === null ? sql`(SELECT next_position FROM vatproof.logs WHERE log_id = ${logId})` : positionAt(to)
    return sql`SELECT next.position FROM (SELECT generate_series(low, ${end} - 1) AS position FROM span) next, LATERAL (
        SELECT FROM vatproof.events WHERE log_id = ${logId} AND position = next.position LIMIT 1) event LIMIT ${limit}`
  }

  const positionsOf = (filter: AuditFilter, limit: number) => {
    const { accountId, keyId, receiptId, type, vatId } = filter
    if (accountId === null && keyId === null && receiptId === null && type === null && vatId === null) return inLog(filter, limit)
    const [first, second] = questions(filter, limit)
    return sql`SELECT position FROM ((${first ?? noPosition}) UNION ALL (${second ?? noPosition})) found ORDER BY position LIMIT ${limit}`
  }

  // LIMIT 1 keeps the planner from choosing a join that reads the whole log.
  return (filter: AuditFilter, after: number, limit: number) =>
    sql`WITH span AS MATERIALIZED (SELECT ${lowest(filter, after)} AS low, ${highest(filter)} AS high)
      SELECT ${names} FROM (${positionsOf(filter, limit)}) found CROSS JOIN LATERAL (
        SELECT ${columns} FROM vatproof.events WHERE log_id = ${logId} AND position = found.position LIMIT 1) event
      ORDER BY event.position`
}

/**
 * Returns true if the event matches the filter. Compares texts of canonical JSON. The event of a validation names no account: its account is that
 * of its key, according to the projection of the keys.
 */
const isMatch = ({ accountId, keyId, receiptId, type: ofType, vatId }: AuditFilter, { data, stream_id, type }: StoredEvent) =>
  (ofType === null || type === ofType) &&
  (receiptId === null || stream_id === receiptStream(receiptId)) &&
  (vatId === null || data.includes(`vat_id":${JSON.stringify(vatId)}`)) &&
  (keyId === null || stream_id === `key-${keyId}` || data.includes(`"key_id":"${keyId}"`)) &&
  (accountId === null || type === commonest || data.includes(`"account_id":"${accountId}"`))

export const make = Effect.map(Effect.all([SqlClient.SqlClient, Integrity]), ([sql, { refuse }]) => {
  const select = makeSelect(sql)
  const decode = Schema.decodeUnknownEffect(Schema.Array(StoredEvent))

  const findKey = SqlSchema.findAll({
    Request: Schema.Struct({ accountId: Schema.String, prefix: Schema.String }),
    Result: Schema.Struct({ key_id: Schema.String }),
    execute: ({ accountId, prefix }) =>
      sql`SELECT key_id FROM vatproof.api_keys WHERE account_id = ${accountId}::uuid AND prefix = ${prefix}`
  })

  const findKeys = SqlSchema.findAll({
    Request: Schema.Array(Schema.String),
    Result: KeyRow,
    execute: (keyIds) => sql`SELECT ${sql.literal(columnsFor(KeyRow.fields))} FROM vatproof.api_keys
      WHERE key_id = ANY (${sqlArray(keyIds, elementType.uuid)})`
  })

  return {
    /** Returns the current account and prefix of each key, by key id. */
    factsOfKeys: (keyIds: ReadonlyArray<string>) =>
      findKeys(keyIds).pipe(
        QueryPolicy.withRetry(retryFor),
        Effect.map((rows) => new Map(rows.map((row): [string, KeyFacts] => [row.keyId, row])))
      ),
    /** Returns the id of the account's API key with this prefix; null if the account has no such key. */
    keyOf: (accountId: string, prefix: string) =>
      findKey({ accountId, prefix }).pipe(
        QueryPolicy.withRetry(retryFor),
        Effect.map(([row]) => row?.key_id ?? null)
      ),
    /** Refuses an event that the index gives a wrong type, account, key, VAT ID or receipt. Returns up to `limit` events that match the filter, at position `after` or later, in ascending order of position. */
    find: (filter: AuditFilter, after: number, limit: number) =>
      Effect.flatMap(select(filter, after, limit), decode).pipe(
        QueryPolicy.withRetry(retryFor),
        Effect.tap((events) => {
          const wrong = events.find((event) => !isMatch(filter, event))
          return wrong === undefined
            ? Effect.void
            : refuse("event", `The index of the events is wrong at position ${wrong.position}`)
        })
      )
  }
})

export type EventSearch = Effect.Success<typeof make>
