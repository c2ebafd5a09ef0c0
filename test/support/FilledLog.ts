/**
 * A large log: 200,000 events with their rows in other tables, in a database where one API key has a receipt and a validation.
 * Every table gets some thousands of rows. No statistics are collected.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const size = 200_000
/** Number of accounts with one key each, in addition to the account that has most events and all receipts. */
const accounts = 3_300

/** A VAT ID whose stored answer is too old, while its source is unavailable (docs/sandbox.md). */
export const staleVatId = "HU10999301"

/** SQL: time of the cached answers, which are stale. */
const answeredAt = `to_char((now() - interval '30 hours') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/**
 * SQL that appends the events. Every 60th is a receipt and every 10th a validation of the busy key, which already had a receipt. The
 * other events are the registrations of the accounts and validations of their keys.
 */
const events = `
  CREATE UNLOGGED TABLE busy AS
    SELECT k.key_id, k.account_id, s.version, e.data AS receipt, d.document, d.retain_until, e.stream_id AS receipt_stream, e.correlation_id,
      l.next_position AS head
    FROM vatproof.logs l, vatproof.api_keys k
    JOIN vatproof.listed r ON r.list = 'receipts-' || k.key_id
    JOIN vatproof.events e ON e.position = r.position
    JOIN vatproof.personal_documents d ON d.position = r.position
    JOIN vatproof.streams s ON s.stream_id = 'key-' || k.key_id
    LIMIT 1;
  CREATE UNLOGGED TABLE made AS
    SELECT i, b.head + i AS position, kind, account, vat_id,
      CASE kind WHEN 'receipt' THEN 'receipt-' || receipt_id WHEN 'registered' THEN 'account-' || account WHEN 'issued' THEN 'account-' || account
        ELSE 'key-' || account END AS stream_id,
      CASE WHEN kind = 'receipt' THEN receipt_id END AS receipt_id,
      CASE kind WHEN 'receipt' THEN 'ReceiptIssued' WHEN 'registered' THEN 'AccountRegistered' WHEN 'issued' THEN 'ApiKeyIssued'
        ELSE 'VatIdVerified' END AS type
    FROM busy b, generate_series(0, ${size - 1}) AS i
    CROSS JOIN LATERAL (SELECT CASE WHEN i % 60 = 0 THEN 'receipt' WHEN i % 10 = 1 THEN 'busy' WHEN i / 30 < ${accounts} AND i % 30 = 2
      THEN 'registered' WHEN i / 30 < ${accounts} AND i % 30 = 3 THEN 'issued' ELSE 'validated' END AS kind) AS k
    CROSS JOIN LATERAL (SELECT CASE WHEN kind IN ('receipt', 'busy') THEN b.key_id ELSE md5((CASE WHEN kind = 'validated' THEN i % ${accounts}
        ELSE i / 30 END)::text)::uuid END AS account,
      CASE WHEN kind = 'receipt' THEN 'DE' || 100440000 + i / 60 % 3 WHEN i = 20000 THEN '${staleVatId}' ELSE 'ATU2' || lpad((i % 20000)::text, 7, '0') END AS vat_id,
      'VP-QC-20261101-' || lpad(i::text, 10, 'A') AS receipt_id) AS of_kind;
  INSERT INTO vatproof.events (log_id, position, stream_id, version, event_id, type, schema_version, occurred_at, recorded_at, correlation_id,
      meter_id, units, data, metadata)
    SELECT 0, m.position, m.stream_id, row_number() OVER (PARTITION BY m.stream_id ORDER BY m.position)
        + CASE WHEN m.kind = 'busy' THEN b.version ELSE 0 END, lpad(to_hex(m.position), 32, '0')::uuid, m.type, 1, now(), now(), b.correlation_id,
      CASE WHEN m.type = 'VatIdVerified' THEN m.stream_id || '-2026-10' END, CASE WHEN m.type = 'VatIdVerified' THEN 1 ELSE 0 END,
      CASE m.type WHEN 'ReceiptIssued' THEN replace(b.receipt, substr(b.receipt_stream, 9), m.receipt_id)
        WHEN 'VatIdVerified' THEN CASE WHEN m.i > 20100 THEN '{' ELSE '{"answer":{"answered_at":"' || ${answeredAt} || '","source":"vies","valid":true},' END
          || '"vat_id":"' || m.vat_id || '"}' ELSE '{"account_id":"' || m.account || '"}' END, '{"request_id":"made up"}'
    FROM made m, busy b ORDER BY m.position;
  INSERT INTO vatproof.personal_documents (log_id, position, document, retain_until)
    SELECT 0, m.position, b.document, b.retain_until FROM made m, busy b WHERE m.kind = 'receipt';
  UPDATE vatproof.logs SET next_position = next_position + ${size}, last_recorded_at = now()`

/** SQL that adds the streams, meters, lists and answers of the appended events, and tiles of a level that no tree reaches. */
const others = `
  INSERT INTO vatproof.streams AS s (log_id, stream_id, version, first_position, last_position)
    SELECT 0, m.stream_id, count(*), min(m.position), max(m.position) FROM made m GROUP BY m.stream_id
    ON CONFLICT (log_id, stream_id) DO UPDATE SET version = s.version + excluded.version, last_position = excluded.last_position;
  INSERT INTO vatproof.meters (log_id, meter_id, used)
    SELECT 0, stream_id || '-2026-10', count(*) FROM made WHERE type = 'VatIdVerified' GROUP BY stream_id
    UNION ALL SELECT 0, 'anonymous-' || md5(i::text), 1 FROM generate_series(1, 20000) AS i;
  INSERT INTO vatproof.listed (log_id, list, position)
    SELECT 0, list, m.position FROM made m, busy b,
      LATERAL (VALUES ('receipts-' || b.key_id), ('receipts-' || b.key_id || '/' || m.vat_id)) AS l(list) WHERE m.kind = 'receipt';
  INSERT INTO vatproof.latest (log_id, key, position, as_of, answered_at, answer)
    SELECT 0, 'answer-' || vat_id, p, p, (${answeredAt})::timestamptz, '{"answered_at":"' || ${answeredAt}
      || '","company_address":null,"company_name":null,"source":"vies","valid":true}'
    FROM busy, generate_series(0, 19999) AS i,
      LATERAL (SELECT CASE WHEN i = 0 THEN '${staleVatId}' ELSE 'ATU2' || lpad(i::text, 7, '0') END AS vat_id,
        head + i + CASE WHEN i % 60 = 0 THEN 20000 ELSE 0 END AS p) AS v
    ON CONFLICT DO NOTHING;
  INSERT INTO vatproof.tiles (log_id, level, index, hashes) SELECT 0, 60, i, decode(repeat('00', 32), 'hex') FROM generate_series(1, 5000) AS i;
  INSERT INTO vatproof.event_index (log_id, position, type, account_id, vat_id, receipt_id)
    SELECT 0, m.position, m.type, CASE WHEN m.account = b.key_id THEN b.account_id ELSE m.account END,
      CASE WHEN m.kind NOT IN ('registered', 'issued') THEN m.vat_id END, m.receipt_id FROM made m, busy b
    ON CONFLICT DO NOTHING;
  INSERT INTO vatproof.source_hours (log_id, hour, member_state, source, outcome, calls, ms_sum, ms_max, last_position)
    SELECT 0, date_trunc('hour', now(), 'UTC') - interval '100 days' - interval '1 hour' * i, m, 'vies', 'answered', 1, 1, 1, 0
    FROM generate_series(1, 10000) AS i, unnest(ARRAY['DE', 'FR']) AS m;
  UPDATE vatproof.projections SET position = (SELECT next_position FROM vatproof.logs)`

/** SQL that adds accounts with contacts, keys, tokens, mails, auditors and tasks, and rate windows. */
const people = `
  CREATE UNLOGGED TABLE person AS SELECT i, md5(i::text)::uuid AS id FROM generate_series(0, ${accounts - 1}) AS i;
  INSERT INTO vatproof.accounts (account_id, plan, verified_at, created_at) SELECT id, 'free', now(), now() FROM person;
  INSERT INTO vatproof.contacts (account_id, email, email_key, password_hash)
    SELECT id, 'made' || i || '@example.com', 'made' || i || '@example.com', 'made up' FROM person;
  INSERT INTO vatproof.api_keys (key_id, account_id, key_sha256, prefix, issued_at)
    SELECT id, id, sha256(id::text::bytea), 'svc_live_' || left(md5(id::text), 3), now() FROM person;
  INSERT INTO vatproof.api_key_labels (key_id, account_id, label) SELECT id, id, 'Shop' FROM person;
  INSERT INTO vatproof.mail_tokens (token_sha256, account_id, purpose, issued_at)
    SELECT sha256(i::text::bytea || id::text::bytea), id, 'verify_email', now() FROM person;
  INSERT INTO vatproof.outbox (mail_id, account_id, purpose, state, expires_at, settled_at) SELECT id, id, 'verify_email', 'sent', now(), now() FROM person;
  INSERT INTO vatproof.auditors (auditor_id, account_id, token_sha256, name, added_at, expires_at)
    SELECT id, id, sha256(id::text::bytea), 'Auditor', now(), now() + interval '1 day' FROM person;
  INSERT INTO vatproof.tasks (log_id, task_id, position, account_id, key_id, member_state, vat_id, reference_hash, accepted_at, expires_at, state,
      closed_by, closed_at, due_at, failure)
    SELECT 0, md5('task' || n)::uuid, 1000000 + n, p.id, p.id, m, m || n, md5(n::text), now(), now() + interval '1 day',
      CASE WHEN n % 2 = 0 THEN 'pending' ELSE 'final' END, CASE WHEN n % 2 = 1 THEN 2000000 + n END, CASE WHEN n % 2 = 1 THEN now() END,
      now() + interval '1 hour', 'vies:MS_UNAVAILABLE'
    FROM generate_series(0, 1999) AS n JOIN person p ON p.i = CASE WHEN n < 1000 THEN 1 ELSE n % ${accounts} END,
      LATERAL (SELECT (ARRAY['AT', 'DE', 'MT'])[n % 3 + 1] AS m) AS s;
  INSERT INTO vatproof.rate_windows (bucket, taken, ends_at)
    SELECT 'minute/key-' || md5(i::text)::uuid, 1, now() + interval '1 minute' FROM generate_series(1, 20000) AS i;
  INSERT INTO vatproof.rate_slots (bucket, taken_at, ends_at) SELECT 'login/' || id, ARRAY[now()], now() + interval '15 minutes' FROM person`

/** Adds all rows. Services may run on the database at the same time. */
export const fill = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const statements = [
    "SELECT next_position FROM vatproof.logs FOR UPDATE",
    "SELECT position FROM vatproof.projections FOR UPDATE",
    ...`${events};${others};${people};DROP TABLE busy, made, person`.split(";")
  ]
  yield* sql.withTransaction(Effect.forEach(statements, (statement) => sql.unsafe(statement).unprepared, { discard: true }))
})

/** Number of events that the newest checkpoint must exceed before `addCheckpoints` runs. */
export const fewest = 10_000

/** Adds unused checkpoints below the newest one. */
export const addCheckpoints = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`INSERT INTO vatproof.checkpoints (log_id, size, note)
    SELECT 0, size, 'made up' FROM generate_series(1000, ${fewest}) AS size ON CONFLICT DO NOTHING`
)
