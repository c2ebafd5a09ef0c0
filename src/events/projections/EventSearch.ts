/** Finds events by what EventPlaces knows of them; where nothing but positions and times are asked for, in the log itself. */
import { DateTime, Effect, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import type { AuditFilter } from "#domain/AuditTrail.ts"
import { logId } from "#events/Append.ts"
import * as StoreAccess from "#events/StoreAccess.ts"
import { StoredEvent } from "#events/StoredEvent.ts"

const patience = "5 seconds"

export const make = Effect.map(SqlClient.SqlClient, (sql) => {
  const positionAt = (moment: DateTime.Utc) => sql`vatproof.position_at(${logId}::smallint, ${DateTime.toDateUtc(moment)})`

  /** Positions from `after` on, and recorded in the filter's time. */
  const inRange = ({ from, to }: AuditFilter, after: number) => [
    sql`log_id = ${logId}`,
    sql`position >= ${after}`,
    ...(from === null ? [] : [sql`position >= ${positionAt(from)}`]),
    ...(to === null ? [] : [sql`position < ${positionAt(to)}`])
  ]

  const about = ({ accountId, receiptId, type, vatId }: AuditFilter) => [
    ...(accountId === null ? [] : [sql`account_id = ${accountId}::uuid`]),
    ...(receiptId === null ? [] : [sql`receipt_id = ${receiptId}`]),
    ...(vatId === null ? [] : [sql`vat_id = ${vatId}`]),
    ...(type === null ? [] : [sql`type = ${type}`])
  ]

  const columns = sql.literal(StoredEvent.columns)

  const select = (filter: AuditFilter, after: number, limit: number) => {
    const conditions = about(filter)
    const range = inRange(filter, after)
    if (conditions.length === 0) {
      return sql`SELECT ${columns} FROM vatproof.events WHERE ${sql.and(range)} ORDER BY position LIMIT ${limit}`
    }
    return sql`SELECT ${columns} FROM vatproof.events WHERE log_id = ${logId} AND position = ANY (ARRAY(
        SELECT position FROM vatproof.event_places WHERE ${sql.and([...range, ...conditions])} ORDER BY position LIMIT ${limit}))
      ORDER BY position`
  }

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
