/** Finds events by what EventPlaces knows of them; where nothing but positions and times are asked for, in the log itself. */
import { DateTime, Effect, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import type { Fragment } from "effect/sql/Statement"
import type { AuditFilter } from "#domain/AuditTrail.ts"
import { logId } from "#events/AppendCommand.ts"
import { eventPlaces } from "#events/projections/EventPlaces.ts"
import * as StoreAccess from "#events/StoreAccess.ts"
import { StoredEvent } from "#events/StoredEvent.ts"

const patience = "5 seconds"

/** Nearly all events are of this type, so it is in no index by type or account (migrations/0007_projections.sql). */
const commonest = "VatIdVerified"

/** The statement that finds what passes a filter: up to `limit` events from position `after` on. */
const makeSelect = (sql: SqlClient.SqlClient) => {
  const positionAt = (moment: DateTime.Utc) => sql`vatproof.position_at(${logId}::smallint, ${DateTime.toDateUtc(moment)})`
  const columns = sql.literal(StoredEvent.columns)
  const names = sql.literal(StoredEvent.columnsOf("event"))
  const common = sql.literal(`type = '${commonest}'`)
  const rare = sql.literal(`type <> '${commonest}'`)

  /** The first position of interest, and the one after the last: those from `after` on that were recorded in the filter's time. */
  const lowest = ({ from }: AuditFilter, after: number) =>
    from === null ? sql`${after}::bigint` : sql`greatest(${after}::bigint, ${positionAt(from)})`

  /** What EventPlaces has not seen yet is not shown, wherever it would be found: else a page could end behind it. */
  const followed = sql`(SELECT position FROM vatproof.projections WHERE log_id = ${logId} AND name = ${eventPlaces})`
  const highest = ({ to }: AuditFilter) => (to === null ? followed : sql`least(${followed}, ${positionAt(to)})`)

  /** A condition for which the planner has no index: beside a condition that leaves few events it could take the index with more of them. */
  const unindexed = (column: string, value: string | null) =>
    value === null ? [] : [sql`${sql.literal(column)}::text || '' = ${value}`]

  const inPlaces = (conditions: ReadonlyArray<Fragment>, limit: number) =>
    sql`SELECT position FROM vatproof.event_places
      WHERE ${sql.and([sql`log_id = ${logId} AND position >= (SELECT low FROM span) AND position < (SELECT high FROM span)`, ...conditions])}
      ORDER BY position LIMIT ${limit}`

  /**
   * Of the streams of the account's keys, which are in the order of the log. Version by version: the planner may read and sort a whole stream
   * for a range of versions.
   */
  const inStreams = (accountId: string, limit: number) =>
    sql`SELECT found.position FROM vatproof.api_keys k, LATERAL (SELECT 'key-' || k.key_id::text AS id) stream, LATERAL (
        SELECT event.position FROM (SELECT generate_series(
            vatproof.version_at(${logId}::smallint, stream.id, (SELECT low FROM span)),
            vatproof.version_at(${logId}::smallint, stream.id, (SELECT high FROM span)) - 1) AS version) next,
          LATERAL (SELECT position, type FROM vatproof.events
            WHERE log_id = ${logId} AND stream_id = stream.id AND version = next.version LIMIT 1) event
        WHERE ${common} LIMIT ${limit}) found
      WHERE k.account_id = ${accountId}::uuid`

  /** An account has fewer events than a type. */
  const indexed = (accountId: string | null, type: string | null) => {
    if (accountId !== null) return [sql`account_id = ${accountId}::uuid`, ...unindexed("type", type)]
    return type === null ? [] : [sql`type = ${type}`]
  }

  /** The questions to ask; each answers with positions of its own. */
  const questions = ({ accountId, receiptId, type, vatId }: AuditFilter, limit: number): ReadonlyArray<Fragment> => {
    if (receiptId !== null) {
      const others = [...unindexed("account_id", accountId), ...unindexed("type", type), ...unindexed("vat_id", vatId)]
      return [inPlaces([sql`receipt_id = ${receiptId}`, ...others], limit)]
    }
    if (vatId !== null) {
      return [
        sql`SELECT position FROM vatproof.places_of_vat_id(${logId}::smallint, ${vatId}, ${accountId}::uuid, ${type}::text,
          (SELECT low FROM span), (SELECT high FROM span), ${limit}::int) AS position`
      ]
    }
    return [
      ...(type === commonest ? [] : [inPlaces([rare, ...indexed(accountId, type)], limit)]),
      ...(type === commonest || type === null
        ? [accountId === null ? inPlaces([common], limit) : inStreams(accountId, limit)]
        : [])
    ]
  }

  const noPosition = sql`SELECT NULL::bigint AS position LIMIT 0`

  /** Without a filter it is the log itself, position by position: the planner may read and sort the whole log for a range of positions. */
  const inLog = ({ to }: AuditFilter, limit: number) => {
    const end = to === null ? sql`(SELECT next_position FROM vatproof.logs WHERE log_id = ${logId})` : positionAt(to)
    return sql`SELECT next.position FROM (SELECT generate_series(low, ${end} - 1) AS position FROM span) next, LATERAL (
        SELECT FROM vatproof.events WHERE log_id = ${logId} AND position = next.position LIMIT 1) event LIMIT ${limit}`
  }

  const found = (filter: AuditFilter, limit: number) => {
    const { accountId, receiptId, type, vatId } = filter
    if (accountId === null && receiptId === null && type === null && vatId === null) return inLog(filter, limit)
    const [first, second] = questions(filter, limit)
    return sql`SELECT position FROM ((${first ?? noPosition}) UNION ALL (${second ?? noPosition})) found ORDER BY position LIMIT ${limit}`
  }

  // LIMIT 1 keeps the planner from a join that reads the whole log.
  return (filter: AuditFilter, after: number, limit: number) =>
    sql`WITH span AS MATERIALIZED (SELECT ${lowest(filter, after)} AS low, ${highest(filter)} AS high)
      SELECT ${names} FROM (${found(filter, limit)}) found CROSS JOIN LATERAL (
        SELECT ${columns} FROM vatproof.events WHERE log_id = ${logId} AND position = found.position LIMIT 1) event
      ORDER BY event.position`
}

export const make = Effect.map(SqlClient.SqlClient, (sql) => {
  const select = makeSelect(sql)
  const decode = Schema.decodeUnknownEffect(Schema.Array(StoredEvent))

  const findAccount = SqlSchema.findAll({
    Request: Schema.Int,
    Result: Schema.Struct({ account_id: Schema.NullOr(Schema.String) }),
    execute: (position) => sql`SELECT account_id FROM vatproof.event_places WHERE log_id = ${logId} AND position = ${position}`
  })

  return {
    /** Up to `limit` events from position `after` on that pass the filter, in their order. */
    find: (filter: AuditFilter, after: number, limit: number) =>
      Effect.flatMap(select(filter, after, limit), decode).pipe(StoreAccess.patiently(patience)),
    /** The account that the event at a position belongs to; null if to none, or if there is no such event. */
    accountAt: (position: number) =>
      findAccount(position).pipe(
        StoreAccess.patiently(patience),
        Effect.map(([row]) => row?.account_id ?? null)
      )
  }
})

export type EventSearch = Effect.Success<typeof make>
