/**
 * The index for the filters of auditors: positions of events by type, account, API key, VAT ID and receipt. One SQL statement fills it
 * from the events, so that no event is sent to the service.
 */
import { Effect } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { logId } from "#events/log/store/AppendCommand.ts"
import * as Projection from "#events/log/projections/Projection.ts"

/** Name of the projection and of its table in the schema vatproof. */
export const eventIndex = "event_index"

/** Creates the projection. Its `apply` inserts missing rows and corrects rows that differ. */
export const definition = Effect.map(SqlClient.SqlClient, (sql) => {
  const apply = SqlSchema.findOne({
    Request: Projection.ProjectionBatch,
    Result: Projection.Changes,
    execute: ({ from, to }) => sql`WITH moved AS (
        INSERT INTO vatproof.event_index AS p (log_id, position, type, account_id, key_id, vat_id, receipt_id)
        SELECT r.log_id, r.position, r.type, r.account_id, r.key_id, r.vat_id, r.receipt_id
        FROM vatproof.event_index_rows(${logId}::smallint, ${from}::bigint, ${to}::bigint) r
        ON CONFLICT (log_id, position) DO UPDATE SET type = excluded.type, account_id = excluded.account_id, key_id = excluded.key_id,
          vat_id = excluded.vat_id, receipt_id = excluded.receipt_id
          WHERE (p.type, p.account_id, p.key_id, p.vat_id, p.receipt_id)
            IS DISTINCT FROM (excluded.type, excluded.account_id, excluded.key_id, excluded.vat_id, excluded.receipt_id)
        RETURNING xmax = 0 AS inserted)
      SELECT count(*) FILTER (WHERE inserted) AS missing, 0::bigint AS surplus, count(*) FILTER (WHERE NOT inserted) AS different FROM moved`
  })
  return Projection.define({ name: eventIndex, version: 1, apply })
})
