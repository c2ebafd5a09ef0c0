-- Of two look-ups that overlap, the one that took longer may have the older answer. It was stored last, and so it took the place of the newer
-- one. Which answer is the newest says the source's own time.

-- When a source gave the answer that an event holds; null if it holds none.
CREATE FUNCTION vatproof.answered_at(p_data text) RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT coalesce(d.json ->> 'answered_at', d.json #>> '{answer,answered_at}')::timestamptz FROM (SELECT vatproof.json_of(p_data) AS json) d
$$;
COMMENT ON FUNCTION vatproof.answered_at IS 'When a source gave the answer that an event with these data holds; null if it holds none.';

ALTER TABLE vatproof.latest ADD COLUMN answered_at timestamptz;
COMMENT ON COLUMN vatproof.latest.answered_at IS 'When the answer was given by the clock of its source, or when it was stored if that was earlier; null for what was stored before this was kept.';

-- As in 0016 (0013 describes it), but for that.
CREATE OR REPLACE FUNCTION vatproof.append_all(
  p_log smallint, p_epoch bigint,
  p_stream text[], p_event_id uuid[], p_type text[], p_schema smallint[], p_occurred timestamptz[], p_correlation uuid[],
  p_causation uuid[], p_trace bytea[], p_data text[], p_metadata text[], p_meter text[], p_units smallint[], p_latest text[],
  p_answer_key text[], p_answer_position bigint[], p_stream_no int[], p_stream_left int[],
  p_streams text[], p_stream_events bigint[], p_stream_first bigint[], p_stream_last bigint[],
  p_meters text[], p_meter_units bigint[], p_meter_room bigint[],
  p_buckets text[], p_bucket_calls bigint[], p_bucket_room bigint[]
) RETURNS TABLE (head bigint, versions bigint[], used bigint[], taken bigint[], ends_in_ms bigint[])
LANGUAGE plpgsql SECURITY DEFINER
-- As for vatproof.append.
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_nestloop = off SET enable_mergejoin = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  minute CONSTANT interval := '1 minute';
  partition_size CONSTANT bigint := 67108864;
  moment timestamptz;
  present timestamptz;
  known_epoch bigint;
  names text[];
BEGIN
  -- One writer a log: the lock is held until the commit. After one who only looked, the moment may be that of the beginning of the wait.
  UPDATE logs AS l SET next_position = l.next_position + cardinality(p_event_id), last_recorded_at = greatest(clock_timestamp(), l.last_recorded_at)
    WHERE l.log_id = p_log RETURNING l.next_position - cardinality(p_event_id), l.last_recorded_at, l.identity_epoch
    INTO STRICT head, moment, known_epoch;
  IF p_epoch <> known_epoch THEN RAISE SQLSTATE 'VP001'; END IF;
  -- A call that was given up may still wait for the lock while the next one is done: by then the head may be in the next partition.
  IF head + cardinality(p_event_id) >= partition_size AND (head + cardinality(p_event_id)) % partition_size < 1000000
    THEN RAISE SQLSTATE 'VP001'; END IF;

  IF cardinality(p_buckets) > 0 THEN
    present := clock_timestamp();
    -- The names are in their order, as all who lock minutes have them. What comes back comes in the order of what went in; if that ever
    -- changed, the batch would be refused rather than mistaken.
    WITH counted AS (
      INSERT INTO rate_windows AS w (bucket, taken, ends_at)
      SELECT u.bucket, u.calls, present + minute FROM unnest(p_buckets, p_bucket_calls) AS u(bucket, calls)
      ON CONFLICT (bucket) DO UPDATE SET
        taken = CASE WHEN w.ends_at > present AND w.ends_at <= present + 2 * minute THEN w.taken ELSE 0 END + excluded.taken,
        ends_at = CASE WHEN w.ends_at > present AND w.ends_at <= present + 2 * minute THEN w.ends_at ELSE excluded.ends_at END
      RETURNING w.bucket, w.taken, w.ends_at)
    SELECT array_agg(bucket), array_agg(taken), array_agg(ceil(extract(epoch FROM ends_at - present) * 1000)::bigint)
      INTO names, taken, ends_in_ms FROM counted;
    IF names IS DISTINCT FROM p_buckets OR EXISTS (SELECT FROM unnest(taken, p_bucket_calls, p_bucket_room) AS u(after, calls, room)
      WHERE u.after - u.calls > u.room) THEN RAISE SQLSTATE 'VP001'; END IF;
  END IF;

  IF EXISTS (SELECT FROM unnest(p_answer_key, p_answer_position) AS u(key, position) WHERE u.key IS NOT NULL
    AND u.position IS DISTINCT FROM (SELECT l.position FROM latest l WHERE l.log_id = p_log AND l.key = u.key))
    THEN RAISE SQLSTATE 'VP001'; END IF;

  IF cardinality(p_meters) > 0 THEN
    WITH charged AS (
      INSERT INTO meters AS m (log_id, meter_id, used)
      SELECT p_log, u.meter_id, u.units FROM unnest(p_meters, p_meter_units) AS u(meter_id, units)
      ON CONFLICT (log_id, meter_id) DO UPDATE SET used = m.used + excluded.used RETURNING m.meter_id, m.used)
    SELECT array_agg(meter_id), array_agg(used) INTO names, used FROM charged;
    IF names IS DISTINCT FROM p_meters OR EXISTS (SELECT FROM unnest(used, p_meter_units, p_meter_room) AS u(after, units, room)
      WHERE u.after - u.units > u.room) THEN RAISE SQLSTATE 'VP001'; END IF;
  END IF;

  WITH moved AS (
    INSERT INTO streams AS s (log_id, stream_id, version, first_position, last_position)
    SELECT p_log, u.stream_id, u.events, head + u.first, head + u.last
    FROM unnest(p_streams, p_stream_events, p_stream_first, p_stream_last) AS u(stream_id, events, first, last)
    ON CONFLICT (log_id, stream_id) DO UPDATE SET version = s.version + excluded.version, last_position = excluded.last_position
    RETURNING s.stream_id, s.version)
  SELECT array_agg(stream_id), array_agg(version) INTO names, versions FROM moved;
  IF names IS DISTINCT FROM p_streams THEN RAISE SQLSTATE 'VP001'; END IF;

  INSERT INTO events (log_id, position, stream_id, version, event_id, type, schema_version, occurred_at, recorded_at,
    correlation_id, causation_id, trace_id, meter_id, units, data, metadata)
  SELECT p_log, head + u.ord - 1, u.stream_id, versions[u.stream_no] - u.stream_left, u.event_id, u.type, u.schema_version, u.occurred_at, moment,
    u.correlation_id, u.causation_id, u.trace_id, u.meter_id, u.units, u.data, u.metadata
  FROM unnest(p_stream, p_stream_no, p_stream_left, p_event_id, p_type, p_schema, p_occurred, p_correlation, p_causation, p_trace, p_meter,
      p_units, p_data, p_metadata) WITH ORDINALITY
    AS u(stream_id, stream_no, stream_left, event_id, type, schema_version, occurred_at, correlation_id, causation_id, trace_id, meter_id,
      units, data, metadata, ord);

  IF num_nonnulls(VARIADIC p_latest) > 0 THEN
    INSERT INTO latest AS l (log_id, key, position, answered_at)
    SELECT DISTINCT ON (u.key) p_log, u.key, head + u.ord - 1, d.answered_at
    FROM unnest(p_latest, p_data) WITH ORDINALITY AS u(key, data, ord)
    CROSS JOIN LATERAL (SELECT least(answered_at(u.data), moment) AS answered_at) d
    WHERE u.key IS NOT NULL ORDER BY u.key, d.answered_at DESC, u.ord DESC
    ON CONFLICT (log_id, key) DO UPDATE SET position = excluded.position, answered_at = excluded.answered_at
      WHERE l.answered_at IS NULL OR l.answered_at <= excluded.answered_at;
  END IF;

  RETURN NEXT;
-- Undoes all of the above. The second is an event_id that is stored already.
EXCEPTION WHEN SQLSTATE 'VP001' OR unique_violation THEN RETURN;
END $$;

-- As in 0016 (0011 describes it), but for that.
CREATE OR REPLACE FUNCTION vatproof.append(
  p_log smallint, p_cmd int[], p_stream text[], p_expected bigint[], p_event_id uuid[], p_type text[], p_schema smallint[],
  p_occurred timestamptz[], p_correlation uuid[], p_causation uuid[], p_trace bytea[], p_data text[], p_metadata text[],
  p_meter text[], p_units smallint[], p_cap bigint[], p_latest text[], p_lists text[], p_epoch bigint[], p_answer_key text[],
  p_answer_position bigint[], p_bucket text[], p_bucket_limit int[]
) RETURNS TABLE (cmd int, outcome text, first_position bigint, version bigint, used bigint, taken bigint, ends_in_ms bigint)
LANGUAGE plpgsql SECURITY DEFINER
-- The plan is made once, before anybody knows how large arrays and tables will be: what grows is read by index, what came is hashed.
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_nestloop = off SET enable_mergejoin = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  minute CONSTANT interval := '1 minute';
  head bigint;
  next bigint;
  known_epoch bigint;
  moment timestamptz;
  present timestamptz;
  event record;
  -- Of the command that the loop is at.
  n int := 0;
  verdict text;
  counts boolean;
  -- One element an event: where it is stored, null if it is not.
  positions bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(p_cmd)]);
  versions bigint[] := positions;
  -- One element a command: what becomes of it.
  commands int[] := '{}';
  outcomes text[] := '{}';
  firsts bigint[] := '{}';
  reached bigint[] := '{}';
  useds bigint[] := '{}';
  takens bigint[] := '{}';
  ends timestamptz[] := '{}';
  -- By the number of a stream, meter or minute: how it stands after the commands so far.
  stream_version bigint[] := '{}';
  meter_used bigint[] := '{}';
  window_bucket text[] := '{}';
  window_taken bigint[] := '{}';
  window_end timestamptz[] := '{}';
BEGIN
  -- One writer a log: the lock is held until the commit. A statement of its own, so that the next one sees what it waited for.
  SELECT next_position, greatest(clock_timestamp(), last_recorded_at), identity_epoch INTO STRICT head, moment, known_epoch
    FROM logs WHERE log_id = p_log FOR UPDATE;
  present := clock_timestamp();
  moment := greatest(present, moment);
  next := head;
  IF num_nonnulls(VARIADIC p_bucket) > 0 THEN
    -- vatproof.take counts in the same windows without the log's lock: the rows are locked before they are read, which is all that an
    -- update does that changes none.
    INSERT INTO rate_windows AS w (bucket, taken, ends_at)
      SELECT DISTINCT b, 0, present + minute FROM unnest(p_bucket) AS b WHERE b IS NOT NULL ORDER BY b
      ON CONFLICT (bucket) DO UPDATE SET taken = w.taken WHERE false;
  END IF;

  FOR event IN
    WITH asked AS MATERIALIZED (
      SELECT u.* FROM unnest(p_cmd, p_stream, p_expected, p_event_id, p_meter, p_units, p_cap, p_epoch, p_answer_key, p_answer_position,
          p_bucket, p_bucket_limit) WITH ORDINALITY
        AS u(cmd, stream_id, expected, event_id, meter_id, units, cap, epoch, answer_key, answer_position, bucket, bucket_limit, ord)),
    stream AS MATERIALIZED (
      SELECT d.stream_id, row_number() OVER ()::int AS no,
        coalesce((SELECT s.version FROM streams s WHERE s.log_id = p_log AND s.stream_id = d.stream_id), 0) AS version
      FROM (SELECT DISTINCT stream_id FROM asked) d),
    meter AS MATERIALIZED (
      SELECT d.meter_id, row_number() OVER ()::int AS no,
        coalesce((SELECT m.used FROM meters m WHERE m.log_id = p_log AND m.meter_id = d.meter_id), 0) AS used
      FROM (SELECT DISTINCT meter_id FROM asked WHERE meter_id IS NOT NULL) d),
    calls AS MATERIALIZED (
      SELECT w.bucket, row_number() OVER ()::int AS no,
        CASE WHEN w.ends_at > present AND w.ends_at <= present + 2 * minute THEN w.taken ELSE 0 END AS taken,
        CASE WHEN w.ends_at > present AND w.ends_at <= present + 2 * minute THEN w.ends_at ELSE present + minute END AS ends_at
      FROM rate_windows w WHERE w.bucket = ANY (p_bucket))
    SELECT a.ord, a.cmd, a.expected, coalesce(a.units, 0) AS units, coalesce(a.cap, 0) AS cap, a.epoch, a.bucket, a.bucket_limit,
      s.no AS stream_no, s.version AS stream_version, m.no AS meter_no, coalesce(m.used, 0) AS used,
      c.no AS window_no, c.taken, c.ends_at,
      -- One by one: the planner knows that this finds one row at most, also before it has ever seen the table.
      (SELECT e.position FROM events e WHERE e.log_id = p_log AND e.event_id = a.event_id AND e.position >= head - 67108864) AS stored_at,
      a.answer_key IS NULL OR a.answer_position IS NOT DISTINCT FROM
        (SELECT l.position FROM latest l WHERE l.log_id = p_log AND l.key = a.answer_key) AS is_newest
    FROM asked a
    JOIN stream s ON s.stream_id = a.stream_id
    LEFT JOIN meter m ON m.meter_id = a.meter_id
    LEFT JOIN calls c ON c.bucket = a.bucket
    ORDER BY a.ord
  LOOP
    IF n = 0 OR event.cmd <> commands[n] THEN
      n := n + 1;
      commands[n] := event.cmd;
      counts := false;
      stream_version[event.stream_no] := coalesce(stream_version[event.stream_no], event.stream_version);
      verdict := CASE
        WHEN event.stored_at IS NOT NULL THEN 'duplicate'
        WHEN event.expected <> stream_version[event.stream_no] THEN 'conflict'
        WHEN event.epoch <> known_epoch OR NOT event.is_newest THEN 'moved'
        ELSE 'appended' END;
      IF verdict = 'appended' AND event.window_no IS NOT NULL THEN
        counts := true;
        window_taken[event.window_no] := coalesce(window_taken[event.window_no], event.taken) + 1;
        window_bucket[event.window_no] := event.bucket;
        window_end[event.window_no] := event.ends_at;
        IF window_taken[event.window_no] > event.bucket_limit THEN verdict := 'rate'; END IF;
      END IF;
      IF event.meter_no IS NOT NULL THEN
        meter_used[event.meter_no] := coalesce(meter_used[event.meter_no], event.used);
        IF verdict = 'appended' AND event.units > 0 THEN
          IF meter_used[event.meter_no] + event.units > event.cap THEN verdict := 'quota';
          ELSE meter_used[event.meter_no] := meter_used[event.meter_no] + event.units; END IF;
        END IF;
      END IF;
      outcomes[n] := verdict;
      firsts[n] := CASE WHEN verdict = 'appended' THEN next ELSE event.stored_at END;
      useds[n] := CASE WHEN event.meter_no IS NULL THEN 0 ELSE meter_used[event.meter_no] END;
      takens[n] := CASE WHEN counts THEN window_taken[event.window_no] END;
      ends[n] := event.ends_at;
    END IF;
    IF verdict = 'appended' THEN
      positions[event.ord] := next;
      next := next + 1;
      stream_version[event.stream_no] := stream_version[event.stream_no] + 1;
      versions[event.ord] := stream_version[event.stream_no];
    END IF;
    reached[n] := stream_version[event.stream_no];
  END LOOP;

  IF next > head THEN
    INSERT INTO events (log_id, position, stream_id, version, event_id, type, schema_version, occurred_at, recorded_at,
      correlation_id, causation_id, trace_id, meter_id, units, data, metadata)
    SELECT p_log, u.position, u.stream_id, u.version, u.event_id, u.type, u.schema_version, u.occurred_at, moment,
      u.correlation_id, u.causation_id, u.trace_id, u.meter_id, u.units, u.data, u.metadata
    FROM unnest(positions, versions, p_stream, p_event_id, p_type, p_schema, p_occurred, p_correlation, p_causation, p_trace, p_meter,
        p_units, p_data, p_metadata)
      AS u(position, version, stream_id, event_id, type, schema_version, occurred_at, correlation_id, causation_id, trace_id, meter_id,
        units, data, metadata)
    WHERE u.position IS NOT NULL;

    INSERT INTO streams AS s (log_id, stream_id, version, first_position, last_position)
    SELECT p_log, u.stream_id, max(u.version), min(u.position), max(u.position)
    FROM unnest(p_stream, versions, positions) AS u(stream_id, version, position) WHERE u.position IS NOT NULL GROUP BY u.stream_id
    ON CONFLICT (log_id, stream_id) DO UPDATE SET version = excluded.version, last_position = excluded.last_position;

    INSERT INTO meters AS m (log_id, meter_id, used)
    SELECT p_log, u.meter_id, sum(u.units)
    FROM unnest(p_meter, p_units, positions) AS u(meter_id, units, position)
    WHERE u.position IS NOT NULL AND u.meter_id IS NOT NULL GROUP BY u.meter_id
    ON CONFLICT (log_id, meter_id) DO UPDATE SET used = m.used + excluded.used;

    IF num_nonnulls(VARIADIC p_latest) > 0 THEN
        INSERT INTO latest AS l (log_id, key, position, answered_at)
      SELECT DISTINCT ON (u.key) p_log, u.key, u.position, d.answered_at
      FROM unnest(p_latest, positions, p_data) AS u(key, position, data)
      CROSS JOIN LATERAL (SELECT least(answered_at(u.data), moment) AS answered_at) d
      WHERE u.key IS NOT NULL AND u.position IS NOT NULL ORDER BY u.key, d.answered_at DESC, u.position DESC
      ON CONFLICT (log_id, key) DO UPDATE SET position = excluded.position, answered_at = excluded.answered_at
        WHERE l.answered_at IS NULL OR l.answered_at <= excluded.answered_at;
    END IF;

    IF num_nonnulls(VARIADIC p_lists) > 0 THEN
      INSERT INTO listed (log_id, list, position)
      SELECT p_log, list, u.position FROM unnest(p_lists, positions) AS u(lists, position), unnest(string_to_array(u.lists, E'\n')) AS list
      WHERE u.lists IS NOT NULL AND u.position IS NOT NULL;
    END IF;

    UPDATE logs SET next_position = next, last_recorded_at = moment WHERE log_id = p_log;
  END IF;

  IF cardinality(window_taken) > 0 THEN
    -- Not by UPDATE … FROM: the plan for that reads the minutes of all callers.
    INSERT INTO rate_windows AS w (bucket, taken, ends_at)
    SELECT u.bucket, u.taken, u.ends_at FROM unnest(window_bucket, window_taken, window_end) AS u(bucket, taken, ends_at)
    WHERE u.taken IS NOT NULL
    ON CONFLICT (bucket) DO UPDATE SET taken = excluded.taken, ends_at = excluded.ends_at;
  END IF;

  RETURN QUERY
  SELECT u.cmd, u.outcome, u.first_position, u.version, u.used, u.taken, ceil(extract(epoch FROM u.ends_at - present) * 1000)::bigint
  FROM unnest(commands, outcomes, firsts, reached, useds, takens, ends)
    AS u(cmd, outcome, first_position, version, used, taken, ends_at);
END $$;

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'vatproof_owner') AND pg_has_role(current_user, 'vatproof_owner', 'MEMBER') THEN
    BEGIN
      ALTER FUNCTION vatproof.answered_at OWNER TO vatproof_owner;
    EXCEPTION WHEN insufficient_privilege THEN NULL;  -- everything belongs to the migrating role then
    END;
  END IF;
END $$;
