-- Appends the commands of one group commit (the batch) in one transaction and one round trip. Checks each command, stores the events of the
-- accepted commands, counts calls in their rate windows, and applies the new events to the inline projections.
--
-- Parameters with one element per event:
--   p_command          number of the event's command, ascending
--   p_causation        task that the event closes, or null
--   p_stream_no, p_meter_no, p_minute_no    index in p_streams, p_meters and p_minutes; null without a meter or rate window
--   p_stream_nth       1 for the first event of its stream in this batch, 2 for the second
-- Parameters with one element per event, of which the function reads only the element of a command's first event:
--   p_units, p_cap     units charged to the meter, and the maximum of the meter
--   p_expected         version that the stream must have, or null
--   p_epoch            identity epoch at which the caller was identified, or null
--   p_answer_key       key of the cached answer that the command repeats, or null
--   p_answer_position  latest.as_of of that answer when it was cached, or null
--   p_minute_limit     maximum number of calls in the rate window
-- Parameters with one element per stream, meter or rate window:
--   p_streams, p_meters, p_minutes    its name
--   p_meter_units, p_minute_calls     sum that the batch adds to it
--   p_meter_room, p_minute_room       largest value before the batch with which no command of the batch exceeds its limit
-- Parameters with one element per personal document: the index of its event, its bytes, and the end of its retention.
-- p_resent is true if an event of the batch may be stored already: by an earlier attempt, or by another command with the same computed id.
--
-- outcomes has one element per command, and is null if all commands were appended:
--   appended           the events of the command are stored
--   duplicate          the command is stored already, or its task is closed already: stored_at has the position of the command's first event, or of
--                      the event that closed the task
--   conflict           the version of the stream differs from the expected version
--   identity           a precondition failed: keys or plans have changed
--   answer             a precondition failed: a newer answer exists
--   rate               the rate window is full
--   quota              the meter would exceed its maximum
-- A call counts in its rate window if the outcome is appended, rate or quota. versions, used, taken and ends_in_ms are the values of the streams,
-- meters and rate windows after the batch.
CREATE OR REPLACE FUNCTION vatproof.append(
  p_log smallint, p_resent boolean,
  p_command int[], p_stream_no int[], p_stream_nth int[], p_meter_no int[], p_minute_no int[],
  p_stream text[], p_event_id uuid[], p_type text[], p_schema smallint[], p_occurred timestamptz[], p_correlation uuid[], p_causation uuid[], p_trace bytea[],
  p_data text[], p_metadata text[], p_meter text[], p_units smallint[], p_cap bigint[], p_expected bigint[], p_epoch bigint[],
  p_answer_key text[], p_answer_position bigint[], p_minute_limit int[],
  p_streams text[], p_meters text[], p_meter_units bigint[], p_meter_room bigint[],
  p_minutes text[], p_minute_calls bigint[], p_minute_room bigint[],
  p_document_event int[], p_document text[], p_retain_until timestamptz[]
) RETURNS TABLE (head bigint, outcomes text[], stored_at bigint[], versions bigint[], used bigint[], taken bigint[], ends_in_ms bigint[])
LANGUAGE plpgsql SECURITY DEFINER
-- These settings force one query plan for all sizes of arrays and tables: index scans of tables, and hash joins with arrays.
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_nestloop = off SET enable_mergejoin = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  minute CONSTANT interval := '1 minute';
  moment timestamptz;
  present timestamptz;
  known_epoch bigint;
  names text[];
  is_newest boolean[];
  counted bigint[];
  next bigint;
  positions bigint[];
  event_versions bigint[];
  verdict text;
  s int; m int; w int;
BEGIN
  -- The lock serializes all appends until the commit, so positions are dense and in commit order. The statements after it see the commits of
  -- all earlier appends.
  SELECT next_position, last_recorded_at, identity_epoch INTO STRICT head, moment, known_epoch FROM logs WHERE log_id = p_log FOR UPDATE;
  present := clock_timestamp();
  moment := greatest(present, moment);

  -- Reads the streams, meters and newest answers. Counts the calls of all commands in their rate windows; the calls of rejected commands that do not
  -- count are subtracted below. The names of the windows are sorted, and count_calls locks windows in the same order, which prevents deadlocks.
  WITH counting AS (
    INSERT INTO rate_windows AS w (bucket, taken, ends_at)
    SELECT p_minutes[i], p_minute_calls[i], present + minute FROM generate_series(1, cardinality(p_minutes)) AS i
    ON CONFLICT (bucket) DO UPDATE SET
      taken = CASE WHEN window_is_open(w.ends_at, present) THEN w.taken ELSE 0 END + excluded.taken,
      ends_at = CASE WHEN window_is_open(w.ends_at, present) THEN w.ends_at ELSE excluded.ends_at END
    RETURNING w.bucket, w.taken, w.ends_at)
  SELECT array_agg(c.bucket), array_agg(c.taken), array_agg(ceil(extract(epoch FROM c.ends_at - present) * 1000)::bigint),
      ARRAY(SELECT coalesce((SELECT s.version FROM streams s WHERE s.log_id = p_log AND s.stream_id = p_streams[i]), 0)
        FROM generate_series(1, cardinality(p_streams)) AS i),
      ARRAY(SELECT coalesce((SELECT m.used FROM meters m WHERE m.log_id = p_log AND m.meter_id = p_meters[i]), 0)
        FROM generate_series(1, cardinality(p_meters)) AS i),
      ARRAY(SELECT p_answer_key[i] IS NULL OR p_answer_position[i] IS NOT DISTINCT FROM
          (SELECT l.as_of FROM latest l WHERE l.log_id = p_log AND l.key = p_answer_key[i])
        FROM generate_series(1, cardinality(p_answer_key)) AS i)
    INTO names, taken, ends_in_ms, versions, used, is_newest FROM counting c;
  IF names <> p_minutes THEN RAISE 'the INSERT returned the rate windows in another order than p_minutes'; END IF;
  -- Looks up the ids of the events only if p_resent is true. The query has no condition on the position, because such a condition might make the
  -- planner scan a partition by position.
  IF p_resent THEN
    SELECT array_agg((SELECT e.position FROM events e WHERE e.log_id = p_log AND e.event_id = u.event_id) ORDER BY u.ord)
      INTO stored_at FROM unnest(p_event_id) WITH ORDINALITY AS u(event_id, ord);
  END IF;
  -- A command is also a duplicate if its task is closed already. If two events of one batch close the same task, they have the same id. The unique
  -- index on event ids then rejects the whole batch.
  IF num_nonnulls(VARIADIC p_causation) > 0 THEN
    stored_at := ARRAY(
      SELECT coalesce(u.stored, CASE WHEN u.task IS NOT NULL THEN
          (SELECT t.closed_by FROM tasks t WHERE t.log_id = p_log AND t.task_id = u.task) END)
      FROM unnest(p_causation, stored_at) WITH ORDINALITY AS u(task, stored, ord) ORDER BY u.ord);
  END IF;

  -- If no command can fail, accepts all commands together, in one statement. Otherwise decides each command individually, which is slower.
  IF num_nonnulls(VARIADIC p_expected) = 0 AND coalesce(num_nonnulls(VARIADIC stored_at), 0) = 0
    AND known_epoch = ALL (array_remove(p_epoch, NULL)) AND true = ALL (is_newest)
    AND NOT EXISTS (SELECT FROM generate_series(1, cardinality(p_meters)) AS i WHERE used[i] > p_meter_room[i])
    AND NOT EXISTS (SELECT FROM generate_series(1, cardinality(p_minutes)) AS i WHERE taken[i] - p_minute_calls[i] > p_minute_room[i])
  THEN
    next := head + cardinality(p_command);
    SELECT ARRAY(SELECT generate_series(head, next - 1)),
        ARRAY(SELECT versions[p_stream_no[i]] + p_stream_nth[i] FROM generate_series(1, cardinality(p_command)) AS i),
        ARRAY(SELECT used[i] + p_meter_units[i] FROM generate_series(1, cardinality(p_meters)) AS i)
      INTO positions, event_versions, used;
  ELSE
    next := head;
    positions := array_fill(NULL::bigint, ARRAY[cardinality(p_command)]);
    event_versions := positions;
    counted := ARRAY(SELECT u.after - u.calls FROM unnest(taken, p_minute_calls) AS u(after, calls));
    outcomes := '{}';
    FOR i IN 1 .. cardinality(p_command) LOOP
      s := p_stream_no[i];
      IF i = 1 OR p_command[i] <> p_command[i - 1] THEN
        m := p_meter_no[i];
        w := p_minute_no[i];
        verdict := CASE
          WHEN stored_at[i] IS NOT NULL THEN 'duplicate'
          WHEN p_expected[i] <> versions[s] THEN 'conflict'
          WHEN p_epoch[i] <> known_epoch THEN 'identity'
          WHEN NOT is_newest[i] THEN 'answer'
          ELSE 'appended' END;
        IF verdict = 'appended' AND w IS NOT NULL THEN
          counted[w] := counted[w] + 1;
          IF counted[w] > p_minute_limit[i] THEN verdict := 'rate'; END IF;
        END IF;
        IF verdict = 'appended' AND m IS NOT NULL AND p_units[i] > 0 THEN
          IF used[m] + p_units[i] > p_cap[i] THEN verdict := 'quota'; ELSE used[m] := used[m] + p_units[i]; END IF;
        END IF;
        outcomes := outcomes || verdict;
      END IF;
      IF verdict = 'appended' THEN
        positions[i] := next;
        next := next + 1;
        versions[s] := versions[s] + 1;
        event_versions[i] := versions[s];
      END IF;
    END LOOP;
    IF counted <> taken THEN
      -- An UPDATE … FROM might scan the rate windows of all callers; INSERT … ON CONFLICT uses the primary key.
      INSERT INTO rate_windows AS w (bucket, taken, ends_at)
        SELECT u.name, u.taken, present + minute FROM unnest(p_minutes, counted) AS u(name, taken)
        ON CONFLICT (bucket) DO UPDATE SET taken = excluded.taken;
      taken := counted;
    END IF;
    IF next = head THEN
      RETURN NEXT;
      RETURN;
    END IF;
  END IF;

  INSERT INTO events (log_id, position, stream_id, version, event_id, type, schema_version, occurred_at, recorded_at,
    correlation_id, causation_id, trace_id, meter_id, units, data, metadata)
  SELECT p_log, positions[i], p_stream[i], event_versions[i], p_event_id[i], p_type[i], p_schema[i], p_occurred[i], moment,
    p_correlation[i], p_causation[i], p_trace[i], p_meter[i], p_units[i], p_data[i], p_metadata[i]
  FROM generate_series(1, cardinality(p_command)) AS i WHERE positions[i] IS NOT NULL;

  IF cardinality(p_document_event) > 0 THEN
    INSERT INTO personal_documents (log_id, position, document, retain_until)
    SELECT p_log, positions[p_document_event[i]], p_document[i], p_retain_until[i]
    FROM generate_series(1, cardinality(p_document_event)) AS i WHERE positions[p_document_event[i]] IS NOT NULL;
  END IF;

  IF p_type && ARRAY['PersonalDataErased', 'PersonalDataHeld', 'PersonalDataReleased'] THEN PERFORM change_documents(p_log, head, next); END IF;
  -- The last argument tells project() whether all events of the batch repeat cached answers and close no task. The data of an event with a new answer
  -- starts with '{"answer":{'. One search of the joined data is faster than a comparison of each element. If the joined data contains this text
  -- elsewhere, the argument is false, and project() only takes longer.
  PERFORM project(p_log, head, next,
    'VatIdVerified' = ALL (p_type) AND num_nonnulls(VARIADIC p_causation) = 0 AND strpos(array_to_string(p_data, ''), '{"answer":{') = 0);
  UPDATE logs SET next_position = next, last_recorded_at = moment WHERE log_id = p_log;
  RETURN NEXT;
END $$;
