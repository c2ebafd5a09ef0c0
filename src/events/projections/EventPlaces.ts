/**
 * Where to look in the log: positions by type, account, API key, VAT ID and receipt, for the auditor's filters. Filled by the database itself,
 * because it concerns every event and no event's data need leave the server for it.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { logId } from "#events/AppendCommand.ts"
import * as Projection from "#events/Projection.ts"

/** Its name, and that of its table in the schema vatproof. */
export const eventPlaces = "event_places"

/**
 * Accounts are known from the event's own data, else from the key whose stream it is; anonymous calls have none.
 *
 * Nearly all events are VatIdVerified, so those are not parsed: `vat_id` is the last key of their canonical JSON, hence what stands behind
 * the last `,"vat_id":"` is `<the VAT ID>"}`. Where it is not, the data is parsed after all.
 */
export const definition = Effect.map(SqlClient.SqlClient, (sql) =>
  Projection.define({
    name: eventPlaces,
    version: 1,
    // OFFSET 0 keeps the planner from putting the expressions in the place of their names, and so computing them several times.
    apply: ({ from, table, to }) => sql`INSERT INTO ${sql(table)} (log_id, position, type, account_id, key_id, vat_id, receipt_id)
      SELECT e.log_id, e.position, e.type, coalesce((e.json ->> 'account_id')::uuid,
          (SELECT k.account_id FROM vatproof.api_keys k WHERE k.key_id = e.key_id)),
        coalesce((e.json ->> 'key_id')::uuid, e.key_id),
        CASE WHEN e.last_text = split_part(e.last_text, '"', 1) || '"}' AND strpos(e.last_text, chr(92)) = 0
          THEN split_part(e.last_text, '"', 1)
          ELSE coalesce(e.json ->> 'vat_id', e.json ->> 'target_vat_id', e.json -> 'receipt' ->> 'target_vat_id', vatproof.json_of(e.data) ->> 'vat_id')
        END,
        CASE WHEN starts_with(e.stream_id, 'receipt-') THEN substr(e.stream_id, 9) END
      FROM (
        SELECT log_id, position, type, stream_id, data,
          CASE WHEN type = 'VatIdVerified' THEN split_part(data, ',"vat_id":"', -1) END AS last_text,
          CASE WHEN type <> 'VatIdVerified' THEN vatproof.json_of(data) END AS json,
          CASE WHEN starts_with(stream_id, 'key-') AND octet_length(stream_id) = 40 THEN split_part(stream_id, 'key-', 2)::uuid END AS key_id
        FROM vatproof.events WHERE log_id = ${logId} AND position >= ${from} AND position < ${to} OFFSET 0) e`
  })
)
