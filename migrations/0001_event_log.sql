-- The append-only log: every fact once, in the order of its commit, at a dense position.
--
-- log_id leads every key, so that the same tables can be distributed by it; there is one log (0) at launch.
-- No sequences, advisory locks or notifications are needed for correctness: the row of the log in vatproof.logs is the only lock.

CREATE SCHEMA IF NOT EXISTS vatproof;

-- Roles are shared by all databases of a server and another database may be creating them at this moment, hence the exceptions.
-- Without the right to create roles everything belongs to the migrating role; the service says at its start what that means.
DO $$
DECLARE wanted text;
BEGIN
  FOREACH wanted IN ARRAY ARRAY['vatproof_owner', 'vatproof_service', 'vatproof_auditor'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
      BEGIN
        EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
      EXCEPTION WHEN duplicate_object OR unique_violation OR insufficient_privilege THEN NULL;
      END;
    END IF;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) AND NOT pg_has_role(current_user, wanted, 'MEMBER') THEN
      BEGIN
        EXECUTE format('GRANT %I TO CURRENT_USER', wanted);
      EXCEPTION WHEN insufficient_privilege THEN NULL;
      END;
    END IF;
  END LOOP;
END $$;

CREATE TABLE vatproof.logs (
  log_id smallint PRIMARY KEY,
  next_position bigint NOT NULL DEFAULT 0 CHECK (next_position >= 0),
  last_recorded_at timestamptz NOT NULL DEFAULT '-infinity',
  identity_epoch bigint NOT NULL DEFAULT 0
);
COMMENT ON COLUMN vatproof.logs.identity_epoch IS 'Moves with every revoked key and changed plan: what a replica remembers of callers is true as long as it stands.';
COMMENT ON TABLE vatproof.logs IS 'One row a log. Its lock, held to the commit, is what makes positions dense and in commit order.';
INSERT INTO vatproof.logs (log_id) VALUES (0);

CREATE TABLE vatproof.streams (
  log_id smallint NOT NULL,
  stream_id text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  first_position bigint NOT NULL,
  last_position bigint NOT NULL,
  PRIMARY KEY (log_id, stream_id)
) WITH (fillfactor = 80);
COMMENT ON TABLE vatproof.streams IS 'Version of each stream: the number of its events.';

CREATE TABLE vatproof.meters (
  log_id smallint NOT NULL,
  meter_id text COLLATE "C" NOT NULL,
  used bigint NOT NULL CHECK (used >= 0),
  PRIMARY KEY (log_id, meter_id)
) WITH (fillfactor = 80);
COMMENT ON TABLE vatproof.meters IS 'Units charged so far: always the sum of events.units of that meter.';

CREATE TABLE vatproof.latest (
  log_id smallint NOT NULL,
  key text COLLATE "C" NOT NULL,
  position bigint NOT NULL,
  PRIMARY KEY (log_id, key)
) WITH (fillfactor = 80);
COMMENT ON TABLE vatproof.latest IS 'Position of the newest event about something, e.g. answer-DE123456789: the newest answer of a source.';

CREATE TABLE vatproof.listed (
  log_id smallint NOT NULL,
  list text COLLATE "C" NOT NULL,
  position bigint NOT NULL,
  PRIMARY KEY (log_id, list, position)
);
COMMENT ON TABLE vatproof.listed IS 'Positions of the events of a list, e.g. receipts-<key>: the receipts of a key, in the order of their issue.';

-- Counters of calls in a window of time, shared by all replicas. They are limits, not facts: a crash may lose the last instants.
CREATE TABLE vatproof.rate_windows (
  bucket text COLLATE "C" PRIMARY KEY,
  taken bigint NOT NULL,
  ends_at timestamptz NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX rate_windows_ends_at ON vatproof.rate_windows (ends_at);

CREATE TABLE vatproof.events (
  log_id smallint NOT NULL,
  position bigint NOT NULL,
  stream_id text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  event_id uuid NOT NULL,
  type text COLLATE "C" NOT NULL,
  schema_version smallint NOT NULL,
  occurred_at timestamptz NOT NULL,
  recorded_at timestamptz NOT NULL,
  correlation_id uuid NOT NULL,
  causation_id uuid,
  trace_id bytea CHECK (octet_length(trace_id) = 16),
  meter_id text COLLATE "C",
  units smallint NOT NULL DEFAULT 0 CHECK (units >= 0),
  data text NOT NULL,
  metadata text NOT NULL,
  PRIMARY KEY (log_id, position)
) PARTITION BY RANGE (position);
COMMENT ON TABLE vatproof.events IS 'The facts. Append-only: written by vatproof.append alone, never changed, never removed.';
COMMENT ON COLUMN vatproof.events.position IS 'Dense from 0 in commit order; also the index of the leaf in the Merkle tree.';
COMMENT ON COLUMN vatproof.events.version IS 'Dense from 1 within the stream.';
COMMENT ON COLUMN vatproof.events.event_id IS 'UUIDv7 of the writer; sending it again appends nothing.';
COMMENT ON COLUMN vatproof.events.occurred_at IS 'When it happened, by the clock of the replica that saw it.';
COMMENT ON COLUMN vatproof.events.recorded_at IS 'When it was stored, by the clock of the database; never before that of the position below it.';
COMMENT ON COLUMN vatproof.events.meter_id IS 'What the event is charged to: a key and its month (UTC), or an anonymous address.';
COMMENT ON COLUMN vatproof.events.units IS 'How many units are charged: 0 or 1 for a validation.';
COMMENT ON COLUMN vatproof.events.data IS 'Canonical JSON (RFC 8785), exactly the bytes that are hashed.';
COMMENT ON COLUMN vatproof.events.metadata IS 'Canonical JSON (RFC 8785): the request it belongs to.';

CREATE FUNCTION vatproof.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'vatproof.events is append-only: % refused', TG_OP USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON vatproof.events FOR EACH ROW EXECUTE FUNCTION vatproof.refuse_change();
ALTER TABLE vatproof.events ENABLE ALWAYS TRIGGER append_only;
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON vatproof.events FOR EACH STATEMENT EXECUTE FUNCTION vatproof.refuse_change();
ALTER TABLE vatproof.events ENABLE ALWAYS TRIGGER append_only_truncate;

-- Partitions hold 2^26 positions. Two are there ahead of the head, so that an append never meets a missing one.
CREATE FUNCTION vatproof.ensure_partitions(p_log smallint) RETURNS int LANGUAGE plpgsql SECURITY DEFINER
SET search_path = vatproof, pg_temp AS $$
DECLARE
  size CONSTANT bigint := 67108864;
  made int := 0;
  n bigint;
  name text;
BEGIN
  FOR n IN SELECT generate_series(0, (SELECT next_position / size FROM logs WHERE log_id = p_log) + 2) LOOP
    name := 'events_p' || n;
    CONTINUE WHEN to_regclass('vatproof.' || name) IS NOT NULL;
    BEGIN
      EXECUTE format('CREATE TABLE vatproof.%I PARTITION OF vatproof.events FOR VALUES FROM (%s) TO (%s)', name, n * size, (n + 1) * size);
    EXCEPTION WHEN duplicate_table THEN CONTINUE;  -- another replica was faster
    END;
    -- A unique index of the parent would have to contain position, and then says nothing: these are a partition's own.
    EXECUTE format('CREATE UNIQUE INDEX ON vatproof.%I (log_id, stream_id, version)', name);
    EXECUTE format('CREATE UNIQUE INDEX ON vatproof.%I (log_id, event_id)', name);
    -- The parent's TRUNCATE trigger does not fire for a partition that is truncated by its own name.
    EXECUTE format('CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON vatproof.%I FOR EACH STATEMENT EXECUTE FUNCTION vatproof.refuse_change()', name);
    EXECUTE format('ALTER TABLE vatproof.%I ENABLE ALWAYS TRIGGER append_only, ENABLE ALWAYS TRIGGER append_only_truncate', name);
    made := made + 1;
  END LOOP;
  RETURN made;
END $$;
SELECT vatproof.ensure_partitions(0::smallint);

-- Appends a batch of commands, each of one or more events, in one transaction. All arrays have one element an event.
--   p_cmd       number of the command the event belongs to      p_expected  version the stream must have, or null
--   p_meter     what is charged, or null                        p_cap       the most that meter may reach with this command
--   p_latest    key under which the event is the newest, or null
--   p_lists     the lists in which it stands, one a line, or null
--   p_epoch     identity_epoch that the command presumes, or null
--   p_answer_key, p_answer_position   the newest position under a key that the command presumes, or null
--   p_bucket, p_bucket_limit          the minute in which the command counts, and its limit, or null
-- One row a command: outcome, first position, version of the stream after it, units used on its meter after it, calls in its minute
-- with it, and when that minute ends.
--   appended    stored                                          duplicate   its event_id is stored already; nothing changes
--   conflict    the stream has another version                  retry       another command of this batch goes first: send again
--   quota       the meter would pass its cap                    moved       what it presumes is no longer so; nothing counts
--   rate        its minute is full
CREATE FUNCTION vatproof.append(
  p_log smallint, p_cmd int[], p_stream text[], p_expected bigint[], p_event_id uuid[], p_type text[], p_schema smallint[],
  p_occurred timestamptz[], p_correlation uuid[], p_causation uuid[], p_trace bytea[], p_data text[], p_metadata text[],
  p_meter text[], p_units smallint[], p_cap bigint[], p_latest text[], p_lists text[], p_epoch bigint[], p_answer_key text[],
  p_answer_position bigint[], p_bucket text[], p_bucket_limit int[]
) RETURNS TABLE (cmd int, outcome text, first_position bigint, version bigint, used bigint, taken bigint, ends_in_ms bigint)
LANGUAGE plpgsql SECURITY DEFINER
-- Measured: with nested loops the planner's guesses about unnest() make this twice as slow.
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_nestloop = off SET enable_mergejoin = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  head bigint;
  known_epoch bigint;
  moment timestamptz;
  minute CONSTANT interval := '1 minute';
BEGIN
  -- One writer a log: the lock is held until the commit. A statement of its own, so that the next one sees what it waited for.
  SELECT next_position, greatest(clock_timestamp(), last_recorded_at), identity_epoch INTO STRICT head, moment, known_epoch
    FROM logs WHERE log_id = p_log FOR UPDATE;
  moment := greatest(clock_timestamp(), moment);
  IF num_nonnulls(VARIADIC p_bucket) > 0 THEN
    -- vatproof.take counts in the same windows without the log's lock: the rows are locked before they are read.
    INSERT INTO rate_windows (bucket, taken, ends_at)
      SELECT DISTINCT b, 0, moment + minute FROM unnest(p_bucket) AS b WHERE b IS NOT NULL ORDER BY b ON CONFLICT DO NOTHING;
    PERFORM FROM rate_windows WHERE bucket = ANY (p_bucket) ORDER BY bucket FOR UPDATE;
  END IF;
  RETURN QUERY
  WITH item AS MATERIALIZED (
    SELECT u.*, row_number() OVER (PARTITION BY u.event_id ORDER BY u.ord) AS nth_of_id,
      (SELECT e.position FROM events e WHERE e.log_id = p_log AND e.event_id = u.event_id AND e.position >= head - 67108864) AS stored_at
    FROM unnest(p_cmd, p_stream, p_expected, p_event_id, p_type, p_schema, p_occurred, p_correlation, p_causation, p_trace, p_data,
      p_metadata, p_meter, p_units, p_cap, p_latest, p_lists, p_epoch, p_answer_key, p_answer_position, p_bucket, p_bucket_limit)
      WITH ORDINALITY
      AS u(cmd, stream_id, expected, event_id, type, schema_version, occurred_at, correlation_id, causation_id, trace_id, data,
        metadata, meter_id, units, cap, latest, lists, epoch, answer_key, answer_position, bucket, bucket_limit, ord)),
  command AS MATERIALIZED (
    SELECT i.cmd, min(i.stream_id) AS stream_id, max(i.expected) AS expected, min(i.ord) AS ord, min(i.meter_id) AS meter_id,
      sum(i.units) AS units, min(i.cap) AS cap, min(i.stored_at) AS stored_at, max(i.nth_of_id) AS nth_of_id,
      min(i.epoch) AS epoch, min(i.answer_key) AS answer_key, min(i.answer_position) AS answer_position, min(i.bucket) AS bucket,
      min(i.bucket_limit) AS bucket_limit
    FROM item i GROUP BY i.cmd),
  known AS MATERIALIZED (
    SELECT c.*,
      coalesce((SELECT s.version FROM streams s WHERE s.log_id = p_log AND s.stream_id = c.stream_id), 0) AS base,
      coalesce((SELECT m.used FROM meters m WHERE m.log_id = p_log AND m.meter_id = c.meter_id), 0) AS used_before,
      (SELECT l.position FROM latest l WHERE l.log_id = p_log AND l.key = c.answer_key) AS answer_now,
      (SELECT w.taken FROM rate_windows w WHERE w.bucket = c.bucket) AS window_taken,
      (SELECT w.ends_at FROM rate_windows w WHERE w.bucket = c.bucket) AS window_ends_at,
      row_number() OVER (PARTITION BY c.stream_id ORDER BY c.ord) AS nth_of_stream
    FROM command c),
  refused AS MATERIALIZED (
    SELECT k.*, CASE
      WHEN stored_at IS NOT NULL THEN 'duplicate'
      WHEN nth_of_id > 1 THEN 'retry'
      WHEN expected IS NOT NULL AND nth_of_stream > 1 THEN 'retry'
      WHEN expected IS NOT NULL AND expected <> base THEN 'conflict'
      WHEN epoch <> known_epoch OR answer_position IS DISTINCT FROM answer_now AND answer_key IS NOT NULL THEN 'moved' END AS why
    FROM known k),
  counted AS MATERIALIZED (
    SELECT r.*, CASE WHEN bucket IS NOT NULL AND why IS NULL THEN
        CASE WHEN window_ends_at > moment THEN window_taken ELSE 0 END
        + count(*) FILTER (WHERE why IS NULL) OVER (PARTITION BY bucket ORDER BY ord) END AS taken,
      CASE WHEN window_ends_at > moment THEN window_ends_at ELSE moment + minute END AS ends_at
    FROM refused r),
  limited AS MATERIALIZED (
    SELECT c.cmd, c.stream_id, c.meter_id, c.units, c.cap, c.ord, c.stored_at, c.base, c.used_before, c.bucket, c.taken, c.ends_at,
      CASE WHEN c.why IS NULL AND c.taken > c.bucket_limit THEN 'rate' ELSE c.why END AS why
    FROM counted c),
  decided AS MATERIALIZED (
    SELECT r.*, coalesce(why, CASE
      WHEN meter_id IS NOT NULL AND units > 0
        AND used_before + sum(units) FILTER (WHERE why IS NULL) OVER (PARTITION BY meter_id ORDER BY ord) > coalesce(cap, 0)
      THEN 'quota' ELSE 'appended' END) AS verdict
    FROM limited r),
  accepted AS MATERIALIZED (
    SELECT i.*, d.base + row_number() OVER (PARTITION BY i.stream_id ORDER BY i.ord) AS version,
      head - 1 + row_number() OVER (ORDER BY i.ord) AS position
    FROM item i JOIN decided d ON d.cmd = i.cmd AND d.verdict = 'appended'),
  inserted AS (
    INSERT INTO events (log_id, position, stream_id, version, event_id, type, schema_version, occurred_at, recorded_at,
      correlation_id, causation_id, trace_id, meter_id, units, data, metadata)
    SELECT p_log, position, stream_id, version, event_id, type, schema_version, occurred_at, moment,
      correlation_id, causation_id, trace_id, meter_id, units, data, metadata FROM accepted),
  moved AS (
    INSERT INTO streams AS s (log_id, stream_id, version, first_position, last_position)
    SELECT p_log, stream_id, max(version), min(position), max(position) FROM accepted GROUP BY stream_id
    ON CONFLICT (log_id, stream_id) DO UPDATE SET version = excluded.version, last_position = excluded.last_position),
  charged AS (
    INSERT INTO meters AS m (log_id, meter_id, used)
    SELECT p_log, meter_id, sum(units) FROM decided WHERE verdict = 'appended' AND meter_id IS NOT NULL GROUP BY meter_id
    ON CONFLICT (log_id, meter_id) DO UPDATE SET used = m.used + excluded.used),
  pointed AS (
    INSERT INTO latest AS l (log_id, key, position)
    SELECT p_log, latest, max(position) FROM accepted WHERE latest IS NOT NULL GROUP BY latest
    ON CONFLICT (log_id, key) DO UPDATE SET position = excluded.position),
  enlisted AS (
    INSERT INTO listed (log_id, list, position)
    SELECT p_log, list, position FROM accepted, unnest(string_to_array(lists, E'\n')) AS list WHERE lists IS NOT NULL),
  windowed AS (
    INSERT INTO rate_windows AS w (bucket, taken, ends_at)
    SELECT bucket, max(taken), min(ends_at) FROM decided WHERE taken IS NOT NULL GROUP BY bucket
    ON CONFLICT (bucket) DO UPDATE SET taken = excluded.taken, ends_at = excluded.ends_at),
  advanced AS (
    UPDATE logs SET next_position = head + (SELECT count(*) FROM accepted), last_recorded_at = moment
    WHERE log_id = p_log)
  SELECT d.cmd, d.verdict, coalesce(a.first_position, d.stored_at), coalesce(a.version, d.base),
    (d.used_before + coalesce(sum(d.units) FILTER (WHERE d.verdict = 'appended') OVER (PARTITION BY d.meter_id ORDER BY d.ord), 0))::bigint,
    d.taken, ceil(extract(epoch FROM d.ends_at - moment) * 1000)::bigint
  FROM decided d
  LEFT JOIN (SELECT cmd AS of_cmd, min(position) AS first_position, max(version) AS version FROM accepted GROUP BY cmd) a ON a.of_cmd = d.cmd;
END $$;
