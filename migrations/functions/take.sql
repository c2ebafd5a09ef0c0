-- Counts one call in each bucket and returns the calls counted so far in its window. A window starts with its first call.
CREATE OR REPLACE FUNCTION vatproof.take(p_bucket text[], p_window_ms bigint[])
RETURNS TABLE (ord bigint, taken bigint, ends_in_ms bigint) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE moment timestamptz := clock_timestamp();
BEGIN
  -- Losing the last counts in a crash costs nobody anything, waiting for the disk does.
  PERFORM set_config('synchronous_commit', 'off', true);
  RETURN QUERY
  WITH asked AS MATERIALIZED (
    SELECT u.* FROM unnest(p_bucket, p_window_ms) WITH ORDINALITY AS u(bucket, window_ms, ord)),
  summed AS MATERIALIZED (
    SELECT bucket, max(window_ms) AS window_ms, count(*) AS calls FROM asked GROUP BY bucket),
  counted AS (
    INSERT INTO rate_windows AS w (bucket, taken, ends_at)
    SELECT bucket, calls, moment + window_ms * interval '1 millisecond' FROM summed ORDER BY bucket
    ON CONFLICT (bucket) DO UPDATE SET
      taken = CASE WHEN w.ends_at > moment AND w.ends_at - moment <= 2 * (excluded.ends_at - moment)
        THEN w.taken + excluded.taken ELSE excluded.taken END,
      ends_at = CASE WHEN w.ends_at > moment AND w.ends_at - moment <= 2 * (excluded.ends_at - moment)
        THEN w.ends_at ELSE excluded.ends_at END
    RETURNING bucket, taken, ends_at)
  SELECT a.ord, c.taken - s.calls + row_number() OVER (PARTITION BY a.bucket ORDER BY a.ord),
    ceil(extract(epoch FROM c.ends_at - moment) * 1000)::bigint
  FROM asked a JOIN summed s ON s.bucket = a.bucket JOIN counted c ON c.bucket = a.bucket;
END $$;
