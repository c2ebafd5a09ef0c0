-- Appends a batch of commands in one transaction. One query reads each stream, meter and minute of the batch once; a loop decides the
-- commands in their order; the INSERT touches the wide columns once. A command is decided against the commands before it in the batch.
--
-- All arrays have one element an event, and a command's events stand together; what it asks is read from its first one.
--   p_cmd       number of the command the event belongs to      p_expected  version the stream must have, or null
--   p_meter     what is charged, or null                        p_cap       the most that meter may reach with this command
--   p_units     what is charged, with the first event           p_latest    key under which the event is the newest, or null
--   p_lists     the lists in which it stands, one a line, or null
--   p_epoch     identity_epoch that the command presumes, or null
--   p_answer_key, p_answer_position   the newest position under a key that the command presumes, or null
--   p_bucket, p_bucket_limit          the minute in which the command counts, and its limit, or null
-- One row a command: outcome, first position, version of the stream after it, units used on its meter after it, calls in its minute
-- with it, and when that minute ends.
--   appended    stored                                          duplicate   its event_id is stored already; nothing changes
--   conflict    the stream has another version                  moved       what it presumes is no longer so; nothing counts
--   quota       the meter would pass its cap                    rate        its minute is full
-- The same event_id twice in one batch violates the unique index: nothing of the batch is stored.
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
