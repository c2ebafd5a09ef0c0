-- Counts a call of each rate window and reads the meter beside it, for callers who are not served by one append: before a source is asked,
-- and before a refusal. A call whose identity epoch has moved is not counted.
CREATE OR REPLACE FUNCTION vatproof.count_calls(p_log smallint, p_epoch bigint[], p_bucket text[], p_meter text[])
RETURNS TABLE (ord bigint, is_current boolean, taken bigint, ends_in_ms bigint, used bigint) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_nestloop = off SET enable_mergejoin = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  minute CONSTANT interval := '1 minute';
  present CONSTANT timestamptz := clock_timestamp();
  known_epoch CONSTANT bigint := (SELECT l.identity_epoch FROM logs l WHERE l.log_id = p_log);
BEGIN
  -- A crash that loses the last counts harms less than a wait for the disk.
  PERFORM set_config('synchronous_commit', 'off', true);
  RETURN QUERY
  WITH call AS MATERIALIZED (
    SELECT u.bucket, u.meter_id, u.ord, coalesce(u.epoch = known_epoch, true) AS is_current
    FROM unnest(p_epoch, p_bucket, p_meter) WITH ORDINALITY AS u(epoch, bucket, meter_id, ord)),
  total AS MATERIALIZED (
    SELECT bucket, count(*) AS calls FROM call WHERE is_current GROUP BY bucket),
  counted AS (
    INSERT INTO rate_windows AS w (bucket, taken, ends_at)
    SELECT bucket, calls, present + minute FROM total ORDER BY bucket
    ON CONFLICT (bucket) DO UPDATE SET
      taken = CASE WHEN w.ends_at > present AND w.ends_at <= present + 2 * minute THEN w.taken ELSE 0 END + excluded.taken,
      ends_at = CASE WHEN w.ends_at > present AND w.ends_at <= present + 2 * minute THEN w.ends_at ELSE excluded.ends_at END
    RETURNING bucket, taken, ends_at)
  SELECT c.ord, c.is_current,
    w.taken - t.calls + row_number() OVER (PARTITION BY c.bucket, c.is_current ORDER BY c.ord),
    ceil(extract(epoch FROM w.ends_at - present) * 1000)::bigint,
    coalesce((SELECT m.used FROM meters m WHERE m.log_id = p_log AND m.meter_id = c.meter_id), 0)
  FROM call c LEFT JOIN total t ON t.bucket = c.bucket LEFT JOIN counted w ON w.bucket = c.bucket;
END $$;
