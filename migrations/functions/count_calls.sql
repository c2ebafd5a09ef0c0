-- Counts calls in their rate windows and reads meters. It serves calls that vatproof.append does not count: a call that needs a source is counted
-- before the source is asked, and a refused request stores no event. If keys or plans have changed since a caller was identified (p_epoch differs
-- from the identity epoch), the function counts nothing and returns only epoch.
--
-- p_epoch has one element per caller, null for a caller without a key. p_meters has the names of the meters to read; used has their values. p_minutes
-- (sorted names of rate windows) and p_minute_calls (numbers of calls) have one element per rate window. taken is the number of calls in each window,
-- including these calls. ends_in_ms is the time until each window ends.
CREATE OR REPLACE FUNCTION vatproof.count_calls(p_log smallint, p_epoch bigint[], p_meters text[], p_minutes text[], p_minute_calls bigint[])
RETURNS TABLE (epoch bigint, used bigint[], taken bigint[], ends_in_ms bigint[]) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  minute CONSTANT interval := '1 minute';
  present CONSTANT timestamptz := clock_timestamp();
  names text[];
BEGIN
  SELECT l.identity_epoch INTO STRICT epoch FROM logs l WHERE l.log_id = p_log;
  IF NOT epoch = ALL (array_remove(p_epoch, NULL)) THEN
    RETURN NEXT;
    RETURN;
  END IF;
  -- The commit does not wait for the disk. In return, a crash may lose the last counts.
  PERFORM set_config('synchronous_commit', 'off', true);
  WITH counting AS (
    INSERT INTO rate_windows AS w (bucket, taken, ends_at)
    SELECT u.name, u.calls, present + minute FROM unnest(p_minutes, p_minute_calls) AS u(name, calls)
    ON CONFLICT (bucket) DO UPDATE SET
      taken = CASE WHEN window_is_open(w.ends_at, present) THEN w.taken ELSE 0 END + excluded.taken,
      ends_at = CASE WHEN window_is_open(w.ends_at, present) THEN w.ends_at ELSE excluded.ends_at END
    RETURNING w.bucket, w.taken, w.ends_at)
  SELECT array_agg(bucket), array_agg(taken), array_agg(ceil(extract(epoch FROM ends_at - present) * 1000)::bigint)
    INTO names, taken, ends_in_ms FROM counting;
  IF names IS DISTINCT FROM p_minutes THEN RAISE 'the INSERT returned the rate windows in another order than p_minutes'; END IF;
  used := ARRAY(SELECT coalesce((SELECT m.used FROM meters m WHERE m.log_id = p_log AND m.meter_id = u.name), 0) FROM unnest(p_meters) AS u(name));
  RETURN NEXT;
END $$;
