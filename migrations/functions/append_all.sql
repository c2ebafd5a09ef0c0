-- Stores a batch in which no command is refused, at about half the cost of vatproof.append, or stores nothing and returns no row; the caller
-- then calls vatproof.append. It stores nothing where vatproof.append would refuse a command, where an event is stored already, and in the
-- first million positions of each partition but the first: the unique index that detects a batch sent twice covers one partition only.
--
-- One element an event, each a command of its own: those of vatproof.append, and
--   p_stream_no     which element of p_streams its stream is        p_stream_left   how many events of the batch come after it there
-- One element for each stream, meter and minute of the batch, its name once:
--   p_streams, p_stream_events, p_stream_first, p_stream_last       the stream, how many events it gets, the first and the last of them from 0
--   p_meters, p_meter_units, p_meter_room                           the meter, what is charged in all, how far it may be before that
--   p_buckets, p_bucket_calls, p_bucket_room                        the minute, the calls in it, how many it may have before them; by name
-- p_epoch is the identity_epoch that commands presume, or null.
-- One row, or none if anything is in the way: the position of the first event, and for each stream its version, each meter what is used
-- and each minute the calls in it after the batch, and when that minute ends.
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
