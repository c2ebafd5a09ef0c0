-- Functions that compute the rows of the projections from the events at positions p_from (inclusive) to p_to (exclusive). The append, the
-- asynchronous projections, the rebuild and the audit use the same functions. The functions read no projection, so a wrong row of a projection
-- never causes another wrong row.
--
-- A computed row of streams, meters, latest or source_hours covers only the events at these positions; project() or the projection merges it with
-- the row in the table.
-- A computed row of accounts, api_keys or auditors covers all events of its stream below p_to; the positions only select the streams.
--
-- Each function is a single SQL statement, which the planner inlines. ORDER BY makes the wanted index the cheapest, whatever the statistics
-- say. OFFSET 0 keeps the planner from computing an expression several times.

-- Returns the task id of a batch item: a UUIDv8 made from the SHA-256 of the batch and the item number. The function computedId in
-- src/domain/log/ComputedId.ts computes the same id.
CREATE OR REPLACE FUNCTION vatproof.item_id(p_batch text, p_item text) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT overlay(overlay(h.hex PLACING '8' FROM 13 FOR 1) PLACING substr('89ab89ab89ab89ab', ('x' || substr(h.hex, 17, 1))::bit(4)::int + 1, 1) FROM 17 FOR 1)::uuid
  FROM (SELECT substr(encode(sha256('item'::bytea || '\x00'::bytea || convert_to(p_batch, 'UTF8') || '\x00'::bytea || convert_to(p_item, 'UTF8')), 'hex'), 1, 32) AS hex) h
$$;

-- Returns the version of each stream, and the positions of its first and last event.
CREATE OR REPLACE FUNCTION vatproof.streams_rows(p_log smallint, p_from bigint, p_to bigint)
RETURNS TABLE (log_id smallint, stream_id text, version bigint, first_position bigint, last_position bigint) LANGUAGE sql STABLE AS $$
  SELECT p_log, e.stream_id, max(e.version), min(e.position), max(e.position)
  FROM (SELECT stream_id, version, position FROM vatproof.events WHERE log_id = p_log AND position >= p_from AND position < p_to ORDER BY position OFFSET 0) e
  GROUP BY e.stream_id
$$;

-- Returns the sum of the units of each meter.
CREATE OR REPLACE FUNCTION vatproof.meters_rows(p_log smallint, p_from bigint, p_to bigint)
RETURNS TABLE (log_id smallint, meter_id text, used bigint) LANGUAGE sql STABLE AS $$
  SELECT p_log, e.meter_id, sum(e.units)
  FROM (SELECT meter_id, units FROM vatproof.events WHERE log_id = p_log AND position >= p_from AND position < p_to ORDER BY position OFFSET 0) e
  WHERE e.meter_id IS NOT NULL GROUP BY e.meter_id
$$;

-- Returns the newest answer for each VAT ID: the answer with the latest time by the source's clock. The company's name and address come from the
-- answer's personal document, and are null after the document is erased. An answer of the BZSt has no name and address. A receipt's document
-- therefore has the official name and address, which VIES disclosed earlier. valid_from is the day from which the VAT ID is valid, if the BZSt named
-- one. Only the data of an event with a new answer begins with '{"answer":{', because canonical JSON sorts keys. The data of other VatIdVerified
-- events is not parsed, because they repeat an answer.
CREATE OR REPLACE FUNCTION vatproof.latest_rows(p_log smallint, p_from bigint, p_to bigint)
RETURNS TABLE (log_id smallint, key text, "position" bigint, as_of bigint, answered_at timestamptz, answer text) LANGUAGE sql STABLE AS $$
  SELECT DISTINCT ON (a.key) p_log, a.key, a.position, a.as_of, a.answered_at, a.answer
  FROM (
    SELECT ('answer-' || r.vat_id) COLLATE "C" AS key, r.position, coalesce(r.erased_by, r.position) AS as_of, least((r.answer ->> 'answered_at')::timestamptz, r.recorded_at) AS answered_at,
      '{"answered_at":' || (r.answer -> 'answered_at')::text
        || ',"company_address":' || coalesce(nullif((r.personal -> 'company_address')::text, 'null'), nullif((r.personal -> 'official_address')::text, '""'), 'null')
        || ',"company_name":' || coalesce(nullif((r.personal -> 'company_name')::text, 'null'), nullif((r.personal -> 'official_name')::text, '""'), 'null')
        || ',"source":' || (r.answer -> 'source')::text || ',"valid":' || (r.answer -> 'valid')::text
        || coalesce(',"valid_from":' || nullif((r.answer -> 'valid_from')::text, 'null'), '') || '}' AS answer
    FROM (
      SELECT d.position, d.recorded_at, d.data -> 'answer' AS answer,
        CASE WHEN encode(sha256(convert_to(p.document, 'UTF8')), 'hex') = d.data ->> 'personal_sha256' THEN vatproof.json_of(p.document) END AS personal,
        CASE WHEN p.document IS NULL THEN p.changed_by END AS erased_by, coalesce(d.data ->> 'vat_id', d.data #>> '{receipt,target_vat_id}') AS vat_id
      FROM (
        SELECT e.position, e.recorded_at, vatproof.json_of(e.data) AS data
        FROM (SELECT position, recorded_at, type, data FROM vatproof.events WHERE log_id = p_log AND position >= p_from AND position < p_to ORDER BY position OFFSET 0) e
        WHERE e.type = 'ReceiptIssued' OR e.type = 'VatIdVerified' AND starts_with(e.data, '{"answer":{') OFFSET 0) d
      LEFT JOIN (SELECT position, document, changed_by FROM vatproof.personal_documents WHERE log_id = p_log AND position >= p_from AND position < p_to
        ORDER BY position OFFSET 0) p ON p.position = d.position OFFSET 0) r OFFSET 0) a
  ORDER BY a.key, a.answered_at DESC, a.position DESC
$$;

-- Returns the entries of lists. A receipt is in two lists: the list of its API key, and the list of its API key and VAT ID. A chunk of items is in
-- the list of its batch. There is no list per account, because an API key may move to another account.
CREATE OR REPLACE FUNCTION vatproof.listed_rows(p_log smallint, p_from bigint, p_to bigint)
RETURNS TABLE (log_id smallint, list text, "position" bigint) LANGUAGE sql STABLE AS $$
  SELECT p_log, unnest(ARRAY['receipts-' || r.key_id, 'receipts-' || r.key_id || '/' || r.vat_id]), r.position
  FROM (
    SELECT d.position, d.data ->> 'key_id' AS key_id, d.data #>> '{receipt,target_vat_id}' AS vat_id
    FROM (
      SELECT e.position, vatproof.json_of(e.data) AS data
      FROM (SELECT position, type, data FROM vatproof.events WHERE log_id = p_log AND position >= p_from AND position < p_to ORDER BY position OFFSET 0) e
      WHERE e.type = 'ReceiptIssued' OFFSET 0) d OFFSET 0) r
  UNION ALL
  SELECT p_log, 'batch-' || b.batch_id, b.position
  FROM (
    SELECT d.position, d.data ->> 'batch_id' AS batch_id
    FROM (
      SELECT e.position, vatproof.json_of(e.data) AS data
      FROM (SELECT position, type, data FROM vatproof.events WHERE log_id = p_log AND position >= p_from AND position < p_to ORDER BY position OFFSET 0) e
      WHERE e.type = 'BatchItemsAccepted' OFFSET 0) d OFFSET 0) b
$$;

-- Returns the plan of each account, and the times of its creation, verification and closing.
CREATE OR REPLACE FUNCTION vatproof.accounts_rows(p_log smallint, p_from bigint, p_to bigint)
RETURNS TABLE (account_id uuid, plan text, per_month bigint, verified_at timestamptz, created_at timestamptz, closed_at timestamptz) LANGUAGE sql STABLE AS $$
  SELECT substr(t.stream_id, 9)::uuid, a.plan, a.per_month, a.verified_at, a.created_at, a.closed_at
  FROM (
    SELECT DISTINCT e.stream_id
    FROM (SELECT stream_id, type FROM vatproof.events WHERE log_id = p_log AND position >= p_from AND position < p_to ORDER BY position OFFSET 0) e
    WHERE e.type IN ('AccountClosed', 'AccountRegistered', 'AccountSignedUp', 'EmailVerified', 'PlanChanged')) t
  CROSS JOIN LATERAL (
    SELECT
      (array_agg(d.data ->> 'plan' ORDER BY d.version DESC) FILTER (WHERE d.type IN ('AccountRegistered', 'AccountSignedUp', 'PlanChanged')))[1] AS plan,
      (array_agg((d.data ->> 'per_month')::bigint ORDER BY d.version DESC) FILTER (WHERE d.type = 'PlanChanged'))[1] AS per_month,
      min(d.occurred_at) FILTER (WHERE d.type IN ('AccountRegistered', 'EmailVerified')) AS verified_at,
      min(d.occurred_at) FILTER (WHERE d.type IN ('AccountRegistered', 'AccountSignedUp')) AS created_at,
      min(d.occurred_at) FILTER (WHERE d.type = 'AccountClosed') AS closed_at
    FROM (
      SELECT e.version, e.type, e.occurred_at, vatproof.json_of(e.data) AS data FROM vatproof.events e
      WHERE e.log_id = p_log AND e.stream_id = t.stream_id AND e.position < p_to
        AND e.type IN ('AccountClosed', 'AccountRegistered', 'AccountSignedUp', 'EmailVerified', 'PlanChanged') ORDER BY e.version OFFSET 0) d) a
$$;

-- Returns the API keys of each account. If an account claims an API key of another account, ApiKeyReleased removes the key from the former account,
-- and ApiKeyClaimed repeats the facts about the key in the stream of the new account. ApiKeyReleased is stored first, so no range of positions
-- produces two rows for one key.
CREATE OR REPLACE FUNCTION vatproof.api_keys_rows(p_log smallint, p_from bigint, p_to bigint)
RETURNS TABLE (key_id uuid, account_id uuid, key_sha256 bytea, prefix text, issued_at timestamptz, revoked_at timestamptz,
  previous_sha256 bytea, previous_until timestamptz) LANGUAGE sql STABLE AS $$
  SELECT k.key_id::uuid, substr(t.stream_id, 9)::uuid, decode(k.secrets[1], 'hex'), k.prefixes[1], k.issued_at, k.revoked_at,
    CASE WHEN k.previous_until[1] IS NOT NULL THEN decode(k.secrets[2], 'hex') END, k.previous_until[1]::timestamptz
  FROM (
    SELECT DISTINCT e.stream_id
    FROM (SELECT stream_id, type FROM vatproof.events WHERE log_id = p_log AND position >= p_from AND position < p_to ORDER BY position OFFSET 0) e
    WHERE e.type IN ('ApiKeyClaimed', 'ApiKeyIssued', 'ApiKeyReleased', 'ApiKeyRevoked', 'ApiKeyRotated')) t
  CROSS JOIN LATERAL (
    SELECT d.data ->> 'key_id' AS key_id,
      array_agg(d.data ->> 'key_sha256' ORDER BY d.version DESC) FILTER (WHERE d.type <> 'ApiKeyRevoked') AS secrets,
      array_agg(d.data ->> 'prefix' ORDER BY d.version DESC) FILTER (WHERE d.type <> 'ApiKeyRevoked') AS prefixes,
      array_agg(d.data ->> 'previous_until' ORDER BY d.version DESC) FILTER (WHERE d.type = 'ApiKeyRotated') AS previous_until,
      min(CASE d.type WHEN 'ApiKeyIssued' THEN d.occurred_at WHEN 'ApiKeyClaimed' THEN (d.data ->> 'issued_at')::timestamptz END) AS issued_at,
      min(d.occurred_at) FILTER (WHERE d.type = 'ApiKeyRevoked') AS revoked_at
    FROM (
      SELECT e.version, e.type, e.occurred_at, vatproof.json_of(e.data) AS data FROM vatproof.events e
      WHERE e.log_id = p_log AND e.stream_id = t.stream_id AND e.position < p_to
        AND e.type IN ('ApiKeyClaimed', 'ApiKeyIssued', 'ApiKeyReleased', 'ApiKeyRevoked', 'ApiKeyRotated') ORDER BY e.version OFFSET 0) d
    GROUP BY 1 HAVING NOT bool_or(d.type = 'ApiKeyReleased')) k
$$;

-- Returns the auditors with the hashes of their tokens.
CREATE OR REPLACE FUNCTION vatproof.auditors_rows(p_log smallint, p_from bigint, p_to bigint)
RETURNS TABLE (auditor_id uuid, account_id uuid, token_sha256 bytea, name text, added_at timestamptz, expires_at timestamptz, revoked_at timestamptz)
LANGUAGE sql STABLE AS $$
  SELECT substr(t.stream_id, 9)::uuid, a.account_id::uuid, decode(a.token_sha256, 'hex'), a.name, a.added_at, a.expires_at::timestamptz, a.revoked_at
  FROM (
    SELECT DISTINCT e.stream_id
    FROM (SELECT stream_id, type FROM vatproof.events WHERE log_id = p_log AND position >= p_from AND position < p_to ORDER BY position OFFSET 0) e
    WHERE e.type IN ('AuditorAdded', 'AuditorRevoked')) t
  CROSS JOIN LATERAL (
    SELECT max(d.data ->> 'account_id') AS account_id, max(d.data ->> 'token_sha256') AS token_sha256, max(d.data ->> 'name') AS name,
      max(d.data ->> 'expires_at') AS expires_at, min(d.occurred_at) FILTER (WHERE d.type = 'AuditorAdded') AS added_at,
      min(d.occurred_at) FILTER (WHERE d.type = 'AuditorRevoked') AS revoked_at
    FROM (
      SELECT e.type, e.occurred_at, vatproof.json_of(e.data) AS data FROM vatproof.events e
      WHERE e.log_id = p_log AND e.stream_id = t.stream_id AND e.position < p_to
        AND e.type IN ('AuditorAdded', 'AuditorRevoked') ORDER BY e.version OFFSET 0) d) a
$$;

-- Returns the tasks. ValidationAccepted opens one task, whose id is the id of the event. BatchItemsAccepted opens a task for each item that is
-- neither malformed nor a duplicate. An event with a causation_id closes the task with that id. BatchItemsCancelled closes the open tasks of a chunk.
--
-- If a task was opened before p_from, its row has only the columns about its closing. If BatchItemsCancelled closes such a task, the function returns
-- no row, and project() updates the table itself. If the range is the whole log, all rows are complete.
CREATE OR REPLACE FUNCTION vatproof.tasks_rows(p_log smallint, p_from bigint, p_to bigint)
RETURNS TABLE (log_id smallint, task_id uuid, "position" bigint, account_id uuid, key_id uuid, member_state text, vat_id text, reference_hash text,
  batch_id uuid, item int, accepted_at timestamptz, expires_at timestamptz, state text, closed_by bigint, closed_at timestamptz) LANGUAGE sql STABLE AS $$
  SELECT p_log, coalesce(a.task_id, c.causation_id), a.position, (a.data ->> 'account_id')::uuid, (a.data ->> 'key_id')::uuid,
    left(a.vat_id, 2), a.vat_id, a.data ->> 'reference_hash', (a.data ->> 'batch_id')::uuid, a.item, a.occurred_at, (a.data ->> 'expires_at')::timestamptz,
    CASE WHEN c.type IN ('VatIdVerified', 'ReceiptIssued') THEN 'final' WHEN c.type = 'ValidationExpired' THEN 'expired'
      WHEN c.position IS NOT NULL OR x.position IS NOT NULL THEN 'cancelled' ELSE 'pending' END,
    coalesce(c.position, x.position), coalesce(c.occurred_at, x.occurred_at)
  FROM (
    SELECT d.position, d.event_id AS task_id, d.occurred_at, d.data, d.data ->> 'vat_id' AS vat_id, NULL::int AS item
    FROM (
      SELECT e.position, e.event_id, e.occurred_at, vatproof.json_of(e.data) AS data
      FROM (SELECT position, event_id, type, occurred_at, data FROM vatproof.events WHERE log_id = p_log AND position >= p_from AND position < p_to ORDER BY position OFFSET 0) e
      WHERE e.type = 'ValidationAccepted' OFFSET 0) d
    UNION ALL
    SELECT i.position, vatproof.item_id(i.data ->> 'batch_id', i.item::text), i.occurred_at, i.data, i.vat_id, i.item
    FROM (
      SELECT d.position, d.occurred_at, d.data, v.vat_id, (d.data ->> 'first')::int + v.nth::int - 1 AS item, d.duplicate_of
      FROM (
        SELECT l.position, l.occurred_at, l.data -> 'vat_ids' AS vat_ids, l.data -> 'duplicate_of' AS duplicate_of, l.data - '{vat_ids,duplicate_of}'::text[] AS data
        FROM (
          SELECT e.position, e.occurred_at, vatproof.json_of(e.data) AS data
          FROM (SELECT position, type, occurred_at, data FROM vatproof.events WHERE log_id = p_log AND position >= p_from AND position < p_to ORDER BY position OFFSET 0) e
          WHERE e.type = 'BatchItemsAccepted' OFFSET 0) l OFFSET 0) d
      CROSS JOIN LATERAL jsonb_array_elements_text(d.vat_ids) WITH ORDINALITY AS v(vat_id, nth) OFFSET 0) i
    WHERE i.vat_id IS NOT NULL AND NOT i.duplicate_of ? i.item::text) a
  FULL JOIN (
    SELECT e.position, e.causation_id, e.type, e.occurred_at
    FROM (SELECT position, causation_id, type, occurred_at FROM vatproof.events WHERE log_id = p_log AND position >= p_from AND position < p_to ORDER BY position OFFSET 0) e
    WHERE e.causation_id IS NOT NULL OFFSET 0) c ON c.causation_id = a.task_id
  LEFT JOIN (
    SELECT d.position, d.occurred_at, d.data ->> 'batch_id' AS batch_id, d.data ->> 'first' AS first
    FROM (
      SELECT e.position, e.occurred_at, vatproof.json_of(e.data) AS data
      FROM (SELECT position, type, occurred_at, data FROM vatproof.events WHERE log_id = p_log AND position >= p_from AND position < p_to ORDER BY position OFFSET 0) e
      WHERE e.type = 'BatchItemsCancelled' OFFSET 0) d OFFSET 0) x ON x.batch_id = a.data ->> 'batch_id' AND x.first = a.data ->> 'first'
$$;

-- Returns the batches. If a batch was accepted before p_from, its row has only the batch id, the cancellation and the completion.
CREATE OR REPLACE FUNCTION vatproof.batches_rows(p_log smallint, p_from bigint, p_to bigint)
RETURNS TABLE (batch_id uuid, "position" bigint, account_id uuid, key_id uuid, items int, malformed int, duplicates int, request_hash text,
  accepted_at timestamptz, expires_at timestamptz, cancelled_by bigint, completed_by bigint) LANGUAGE sql STABLE AS $$
  SELECT (b.data ->> 'batch_id')::uuid, max(b.position) FILTER (WHERE b.type = 'BatchAccepted'),
    max(b.data ->> 'account_id') FILTER (WHERE b.type = 'BatchAccepted')::uuid, max(b.data ->> 'key_id') FILTER (WHERE b.type = 'BatchAccepted')::uuid,
    max(b.data ->> 'items')::int, max(b.data ->> 'malformed')::int, max(b.data ->> 'duplicates')::int, max(b.data ->> 'request_hash'),
    max(b.occurred_at) FILTER (WHERE b.type = 'BatchAccepted'), max(b.data ->> 'expires_at')::timestamptz,
    min(b.position) FILTER (WHERE b.type = 'BatchCancelled'), min(b.position) FILTER (WHERE b.type = 'BatchCompleted')
  FROM (
    SELECT e.position, e.type, e.occurred_at, vatproof.json_of(e.data) AS data
    FROM (SELECT position, type, occurred_at, data FROM vatproof.events WHERE log_id = p_log AND position >= p_from AND position < p_to ORDER BY position OFFSET 0) e
    WHERE e.type IN ('BatchAccepted', 'BatchCancelled', 'BatchCompleted') OFFSET 0) b
  GROUP BY 1
$$;

-- Returns the rows of the event index. Nearly all events are VatIdVerified. To save time, their data is not parsed as JSON: vat_id is the last key of
-- the canonical JSON, so the text after the last `,"vat_id":"` is `<the VAT ID>"}`. Only if this text has another form, the data is parsed. A
-- VatIdVerified event has no account id, and its API key is in the name of its stream.
CREATE OR REPLACE FUNCTION vatproof.event_index_rows(p_log smallint, p_from bigint, p_to bigint)
RETURNS TABLE (log_id smallint, "position" bigint, type text, account_id uuid, key_id uuid, vat_id text, receipt_id text) LANGUAGE sql STABLE AS $$
  SELECT p_log, e.position, e.type, (e.json ->> 'account_id')::uuid, coalesce((e.json ->> 'key_id')::uuid, e.key_id),
    CASE WHEN e.last_text = split_part(e.last_text, '"', 1) || '"}' AND strpos(e.last_text, chr(92)) = 0
      THEN split_part(e.last_text, '"', 1)
      ELSE coalesce(e.json ->> 'vat_id', e.json ->> 'target_vat_id', e.json -> 'receipt' ->> 'target_vat_id', vatproof.json_of(e.data) ->> 'vat_id')
    END,
    CASE WHEN starts_with(e.stream_id, 'receipt-') THEN substr(e.stream_id, 9) END
  FROM (
    SELECT position, type, stream_id, data,
      CASE WHEN type = 'VatIdVerified' THEN split_part(data, ',"vat_id":"', -1) END AS last_text,
      CASE WHEN type <> 'VatIdVerified' THEN vatproof.json_of(data) END AS json,
      CASE WHEN starts_with(stream_id, 'key-') AND octet_length(stream_id) = 40 THEN split_part(stream_id, 'key-', 2)::uuid END AS key_id
    FROM vatproof.events WHERE log_id = p_log AND position >= p_from AND position < p_to ORDER BY position OFFSET 0) e
$$;

-- Returns the calls of sources by hour (UTC), member state, source and outcome, from the attempts[] of the events. A failed call has the code of the
-- source as its outcome, or the reason of the failure if there is no code. Attempts that called no source do not count.
--
-- Nearly all events repeat a cached answer and have no attempts. To save time, only the attempts are parsed as JSON. Canonical JSON has no spaces and
-- escapes quotes in strings, so the text tests find exactly the keys. The last key of an attempt is a time, so '"}],"' is the end of the attempts.
CREATE OR REPLACE FUNCTION vatproof.source_hours_rows(p_log smallint, p_from bigint, p_to bigint)
RETURNS TABLE (log_id smallint, hour timestamptz, member_state text, source text, outcome text, calls bigint, ms_sum bigint, ms_max int, last_position bigint) LANGUAGE sql STABLE AS $$
  SELECT p_log, date_trunc('hour', a.started_at, 'UTC'), a.member_state, a.source, a.outcome, count(*), sum(a.ms)::bigint, max(a.ms), max(a.position)
  FROM (
    SELECT d.position, d.member_state, t.started_at, t.source, t.duration_ms AS ms,
      CASE t.outcome WHEN 'answered' THEN 'answered' ELSE coalesce(t.code, t.outcome) END AS outcome
    FROM (
      SELECT e.position, vatproof.json_of(split_part(split_part(e.data, '"attempts":', 2), '"}],"', 1) || '"}]') AS attempts,
        left(split_part(e.data, CASE WHEN starts_with(e.type, 'VatId') THEN ',"vat_id":"' ELSE '"target_vat_id":"' END, -1), 2) AS member_state
      FROM (SELECT position, type, data FROM vatproof.events WHERE log_id = p_log AND position >= p_from AND position < p_to ORDER BY position OFFSET 0) e
      WHERE e.type IN ('VatIdVerified', 'VatIdVerificationFailed', 'ReceiptIssued', 'ConfirmationRefused') AND strpos(e.data, '"attempts":[{') > 0 OFFSET 0) d
    CROSS JOIN LATERAL jsonb_to_recordset(d.attempts) AS t(source text, outcome text, code text, started_at timestamptz, duration_ms int)
    WHERE t.outcome NOT IN ('circuit_open', 'saturated', 'over_budget') OFFSET 0) a
  GROUP BY 2, 3, 4, 5
$$;

-- Applies the events at positions p_from (inclusive) to p_to (exclusive) to the inline projections.
--
-- The statements name the tables of these projections without a schema. The search_path of the append selects the tables in the schema vatproof; the
-- search_path of the rebuild selects temporary tables.
--
-- Nearly all events repeat a cached answer. p_repeats_only is true if all events of the range do so. Then only streams and meters change, and no JSON
-- is parsed.
--
-- enable_bitmapscan is off, because with stale statistics a bitmap scan of another index might read the whole partition.
CREATE OR REPLACE FUNCTION vatproof.project(p_log smallint, p_from bigint, p_to bigint, p_repeats_only boolean) RETURNS void LANGUAGE plpgsql SET enable_bitmapscan = off AS $$
DECLARE
  types text[];
  has_answers boolean;
  has_closings boolean;
  ended record;
  open_task uuid;
BEGIN
  IF NOT p_repeats_only THEN
    SELECT array_agg(e.type), bool_or(e.type = 'ReceiptIssued' OR e.type = 'VatIdVerified' AND starts_with(e.data, '{"answer":{')), bool_or(e.causation_id IS NOT NULL)
      INTO types, has_answers, has_closings
      FROM (SELECT type, causation_id, data FROM vatproof.events WHERE log_id = p_log AND position >= p_from AND position < p_to ORDER BY position OFFSET 0) e;
  END IF;

  WITH moved AS (
    INSERT INTO streams AS s (log_id, stream_id, version, first_position, last_position)
      SELECT r.log_id, r.stream_id, r.version, r.first_position, r.last_position FROM vatproof.streams_rows(p_log, p_from, p_to) r
      ON CONFLICT (log_id, stream_id) DO UPDATE SET version = excluded.version, last_position = excluded.last_position)
  INSERT INTO meters AS m (log_id, meter_id, used)
    SELECT r.log_id, r.meter_id, r.used FROM vatproof.meters_rows(p_log, p_from, p_to) r
    ON CONFLICT (log_id, meter_id) DO UPDATE SET used = m.used + excluded.used WHERE excluded.used > 0;
  IF has_answers THEN
    INSERT INTO latest AS l (log_id, key, position, as_of, answered_at, answer)
      SELECT r.log_id, r.key, r.position, r.as_of, r.answered_at, r.answer FROM vatproof.latest_rows(p_log, p_from, p_to) r
      ON CONFLICT (log_id, key) DO UPDATE SET position = excluded.position, as_of = excluded.as_of, answered_at = excluded.answered_at,
        answer = excluded.answer WHERE l.answered_at <= excluded.answered_at;
  END IF;
  IF types && ARRAY['PersonalDataErased'] THEN
    -- Computes the rows of answers again whose personal documents these events erased: the names and addresses become null. Every VAT ID with an
    -- answer has a row already, so this INSERT only updates rows. It updates a row only if the erased answer is the newest answer for the VAT ID.
    INSERT INTO latest AS l (log_id, key, position, as_of, answered_at, answer)
      SELECT DISTINCT ON (r.key) r.log_id, r.key, r.position, r.as_of, r.answered_at, r.answer
      FROM (SELECT e.data FROM vatproof.events e WHERE e.log_id = p_log AND e.position >= p_from AND e.position < p_to AND e.type = 'PersonalDataErased' OFFSET 0) e
      CROSS JOIN LATERAL jsonb_array_elements_text(vatproof.json_of(e.data) -> 'positions') AS erased(position)
      CROSS JOIN LATERAL vatproof.latest_rows(p_log, erased.position::bigint, erased.position::bigint + 1) r
      ORDER BY r.key, r.answered_at DESC, r.position DESC
      ON CONFLICT (log_id, key) DO UPDATE SET as_of = excluded.as_of, answer = excluded.answer WHERE l.position = excluded.position;
  END IF;
  IF types && ARRAY['ReceiptIssued', 'BatchItemsAccepted'] THEN
    INSERT INTO listed (log_id, list, position) SELECT r.log_id, r.list, r.position FROM vatproof.listed_rows(p_log, p_from, p_to) r;
  END IF;
  IF types && ARRAY['AccountClosed', 'AccountRegistered', 'AccountSignedUp', 'EmailVerified', 'PlanChanged'] THEN
    INSERT INTO accounts AS a (account_id, plan, per_month, verified_at, created_at, closed_at)
      SELECT r.account_id, r.plan, r.per_month, r.verified_at, r.created_at, r.closed_at FROM vatproof.accounts_rows(p_log, p_from, p_to) r
      ON CONFLICT (account_id) DO UPDATE SET plan = excluded.plan, per_month = excluded.per_month, verified_at = excluded.verified_at,
        created_at = excluded.created_at, closed_at = excluded.closed_at;
  END IF;
  IF types && ARRAY['ApiKeyClaimed', 'ApiKeyIssued', 'ApiKeyReleased', 'ApiKeyRevoked', 'ApiKeyRotated'] THEN
    INSERT INTO api_keys AS k (key_id, account_id, key_sha256, prefix, issued_at, revoked_at, previous_sha256, previous_until)
      SELECT r.key_id, r.account_id, r.key_sha256, r.prefix, r.issued_at, r.revoked_at, r.previous_sha256, r.previous_until
      FROM vatproof.api_keys_rows(p_log, p_from, p_to) r
      ON CONFLICT (key_id) DO UPDATE SET account_id = excluded.account_id, key_sha256 = excluded.key_sha256, prefix = excluded.prefix,
        issued_at = excluded.issued_at, revoked_at = excluded.revoked_at, previous_sha256 = excluded.previous_sha256,
        previous_until = excluded.previous_until
        WHERE k.revoked_at IS DISTINCT FROM excluded.revoked_at OR k.key_sha256 <> excluded.key_sha256 OR k.account_id <> excluded.account_id;
  END IF;
  IF types && ARRAY['AuditorAdded', 'AuditorRevoked'] THEN
    INSERT INTO auditors AS a (auditor_id, account_id, token_sha256, name, added_at, expires_at, revoked_at)
      SELECT r.auditor_id, r.account_id, r.token_sha256, r.name, r.added_at, r.expires_at, r.revoked_at
      FROM vatproof.auditors_rows(p_log, p_from, p_to) r
      ON CONFLICT (auditor_id) DO UPDATE SET account_id = excluded.account_id, token_sha256 = excluded.token_sha256, name = excluded.name,
        added_at = excluded.added_at, expires_at = excluded.expires_at, revoked_at = excluded.revoked_at;
  END IF;
  IF types && ARRAY['ValidationAccepted', 'BatchItemsAccepted'] THEN
    -- Items of a batch become due after 30 s. In this time, the replica that appended the items records the answers that are cached, and then makes
    -- the other items due (release_items).
    INSERT INTO tasks (log_id, task_id, position, account_id, key_id, member_state, vat_id, reference_hash, batch_id, item, accepted_at, expires_at, state, closed_by, closed_at, due_at)
      SELECT r.log_id, r.task_id, r.position, r.account_id, r.key_id, r.member_state, r.vat_id, r.reference_hash, r.batch_id, r.item, r.accepted_at, r.expires_at,
        r.state, r.closed_by, r.closed_at, CASE WHEN r.batch_id IS NULL THEN now() ELSE now() + interval '30 seconds' END
      FROM vatproof.tasks_rows(p_log, p_from, p_to) r WHERE r.position IS NOT NULL;
  END IF;
  IF has_closings THEN
    -- Updates row by row, because a single UPDATE might scan the whole table.
    FOR ended IN SELECT r.task_id, r.state, r.closed_by, r.closed_at FROM vatproof.tasks_rows(p_log, p_from, p_to) r WHERE r.position IS NULL LOOP
      UPDATE tasks t SET state = ended.state, closed_by = ended.closed_by, closed_at = ended.closed_at, claim = NULL
        WHERE t.log_id = p_log AND t.task_id = ended.task_id;
    END LOOP;
  END IF;
  IF types && ARRAY['BatchItemsCancelled'] THEN
    FOR ended IN
      SELECT d.position, d.occurred_at, (d.data ->> 'batch_id')::uuid AS batch_id, (d.data ->> 'first')::int AS first, (d.data ->> 'count')::int AS count
      FROM (
        SELECT e.position, e.occurred_at, vatproof.json_of(e.data) AS data
        FROM (SELECT position, type, occurred_at, data FROM vatproof.events WHERE log_id = p_log AND position >= p_from AND position < p_to ORDER BY position OFFSET 0) e
        WHERE e.type = 'BatchItemsCancelled' OFFSET 0) d ORDER BY d.position
    LOOP
      FOR open_task IN SELECT o.task_id FROM tasks o WHERE o.batch_id = ended.batch_id AND o.item >= ended.first AND o.item < ended.first + ended.count
        AND o.closed_by IS NULL ORDER BY o.item LIMIT ended.count
      LOOP
        UPDATE tasks t SET state = 'cancelled', closed_by = ended.position, closed_at = ended.occurred_at, claim = NULL
          WHERE t.log_id = p_log AND t.task_id = open_task;
      END LOOP;
    END LOOP;
  END IF;
  IF types && ARRAY['BatchAccepted', 'BatchCancelled', 'BatchCompleted'] THEN
    INSERT INTO batches (batch_id, position, account_id, key_id, items, malformed, duplicates, request_hash, accepted_at, expires_at, cancelled_by, completed_by)
      SELECT r.batch_id, r.position, r.account_id, r.key_id, r.items, r.malformed, r.duplicates, r.request_hash, r.accepted_at, r.expires_at, r.cancelled_by, r.completed_by
      FROM vatproof.batches_rows(p_log, p_from, p_to) r WHERE r.position IS NOT NULL;
    FOR ended IN SELECT r.batch_id, r.cancelled_by, r.completed_by FROM vatproof.batches_rows(p_log, p_from, p_to) r WHERE r.position IS NULL LOOP
      UPDATE batches b SET cancelled_by = coalesce(b.cancelled_by, ended.cancelled_by), completed_by = coalesce(b.completed_by, ended.completed_by)
        WHERE b.batch_id = ended.batch_id;
    END LOOP;
  END IF;
END $$;
