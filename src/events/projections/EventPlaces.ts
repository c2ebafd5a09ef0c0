/**
 * Where to look in the log: positions by type, account, VAT ID and receipt, for the auditor's filters. Filled by the database itself,
 * because it concerns every event and no event's data need leave the server for it.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { logId } from "#events/Append.ts"
import * as Projection from "#events/Projection.ts"

/** Its name, and that of its table in the schema vatproof. */
export const eventPlaces = "event_places"

/** Accounts are known from the event's own data, else from the key whose stream it is; anonymous calls have none. */
export const definition = Effect.map(SqlClient.SqlClient, (sql) =>
  Projection.define({
    name: eventPlaces,
    version: 1,
    apply: ({ from, table, to }) => sql`INSERT INTO ${sql(table)} (log_id, position, type, account_id, vat_id, receipt_id)
      SELECT e.log_id, e.position, e.type, coalesce((d.data ->> 'account_id')::uuid, k.account_id),
        coalesce(d.data ->> 'vat_id', d.data ->> 'target_vat_id', d.data -> 'receipt' ->> 'target_vat_id'),
        CASE WHEN starts_with(e.stream_id, 'receipt-') THEN substr(e.stream_id, 9) END
      FROM vatproof.events e
      CROSS JOIN LATERAL (SELECT e.data::jsonb AS data) d
      LEFT JOIN vatproof.api_keys k
        ON k.key_id = CASE WHEN e.stream_id ~ '^key-[0-9a-f-]{36}$' THEN substr(e.stream_id, 5)::uuid END
      WHERE e.log_id = ${logId} AND e.position >= ${from} AND e.position < ${to}`
  })
)
