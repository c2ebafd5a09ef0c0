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
  const common = sql.literal(`type = '${commonest}'`)
  const rare = sql.literal(`type <> '${commonest}'`)

  /** The first position of interest, and the one after the last: those from `after` on that were recorded in the filter's time. */
  const lowest = ({ from }: AuditFilter, after: number) =>
    from === null ? sql`${after}::bigint` : sql`greatest(${after}::bigint, ${positionAt(from)})`
  const inLog = ({ to }: AuditFilter) => (to === null ? [] : [sql`position < ${positionAt(to)}`])

  /** What EventPlaces has not seen yet is not shown, wherever it would be found: else a page could end behind it. */
  const followed = sql`(SELECT position FROM vatproof.projections WHERE log_id = ${logId} AND name = ${eventPlaces})`
  const highest = ({ to }: AuditFilter) => (to === null ? followed : sql`least(${followed}, ${positionAt(to)})`)

  const ofAccount = (accountId: string) => sql`account_id = ${accountId}::uuid`
  const ofType = (type: string | null) => (type === null ? [] : [sql`type = ${type}`])

  const inPlaces = (conditions: ReadonlyArray<Fragment>, limit: number) =>
    sql`SELECT position FROM vatproof.event_places
      WHERE ${sql.and([sql`log_id = ${logId} AND position >= (SELECT low FROM span) AND position < (SELECT high FROM span)`, ...conditions])}
      ORDER BY position LIMIT ${limit}`

  /** Of the streams of the account's keys, which are in the order of the log. */
  const inStreams = (accountId: string, limit: number) =>
    sql`SELECT found.position FROM vatproof.api_keys k, LATERAL (
        SELECT position FROM vatproof.events WHERE log_id = ${logId} AND stream_id = 'key-' || k.key_id::text AND ${common}
          AND version >= vatproof.version_at(${logId}::smallint, 'key-' || k.key_id::text, (SELECT low FROM span))
          AND version < vatproof.version_at(${logId}::smallint, 'key-' || k.key_id::text, (SELECT high FROM span))
        ORDER BY version LIMIT ${limit}) found
      WHERE k.account_id = ${accountId}::uuid`

  /** The questions to ask; each answers with positions of its own. */
  const questions = ({ accountId, receiptId, type, vatId }: AuditFilter, limit: number): ReadonlyArray<Fragment> => {
    const account = accountId === null ? [] : [ofAccount(accountId)]
    if (receiptId !== null) {
      const about = vatId === null ? [] : [sql`vat_id = ${vatId}`]
      return [inPlaces([sql`receipt_id = ${receiptId}`, ...about, ...account, ...ofType(type)], limit)]
    }
    if (vatId !== null) {
      return [
        sql`SELECT position FROM vatproof.places_of_vat_id(${logId}::smallint, ${vatId}, ${accountId}::uuid, ${type}::text,
          (SELECT low FROM span), (SELECT high FROM span), ${limit}::int) AS position`
      ]
    }
    return [
      ...(type === commonest ? [] : [inPlaces([rare, ...account, ...ofType(type)], limit)]),
      ...(type === commonest || type === null
        ? [accountId === null ? inPlaces([common], limit) : inStreams(accountId, limit)]
        : [])
    ]
  }

  const noPosition = sql`SELECT NULL::bigint AS position LIMIT 0`

  return (filter: AuditFilter, after: number, limit: number) => {
    const { accountId, receiptId, type, vatId } = filter
    if (accountId === null && receiptId === null && type === null && vatId === null) {
      return sql`SELECT ${columns} FROM vatproof.events
        WHERE ${sql.and([sql`log_id = ${logId} AND position >= ${lowest(filter, after)}`, ...inLog(filter)])}
        ORDER BY position LIMIT ${limit}`
    }
    const [first, second] = questions(filter, limit)
    return sql`WITH span AS MATERIALIZED (SELECT ${lowest(filter, after)} AS low, ${highest(filter)} AS high)
      SELECT ${columns} FROM vatproof.events WHERE log_id = ${logId} AND position = ANY (ARRAY(
        SELECT position FROM ((${first ?? noPosition}) UNION ALL (${second ?? noPosition})) found ORDER BY position LIMIT ${limit}))
      ORDER BY position`
  }
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
