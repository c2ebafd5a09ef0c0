-- Deletes up to p_max rows of rate_windows and up to p_max rows of rate_slots that ended more than a minute ago. Returns the larger of the two
-- numbers of deleted rows. If it is p_max, one of the tables may have more such rows, and the caller must call the function again. Skips locked rows,
-- which the next call deletes. A wait for their lock could cause a deadlock, because other functions lock several rows in the order of their names.
CREATE OR REPLACE FUNCTION vatproof.sweep_limits(p_max int) RETURNS int LANGUAGE plpgsql SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  over CONSTANT timestamptz := clock_timestamp() - interval '1 minute';
  windows int;
  places int;
BEGIN
  DELETE FROM rate_windows WHERE bucket = ANY (ARRAY(
    SELECT bucket FROM rate_windows WHERE ends_at < over ORDER BY ends_at LIMIT p_max FOR UPDATE SKIP LOCKED));
  GET DIAGNOSTICS windows = ROW_COUNT;
  DELETE FROM rate_slots WHERE bucket = ANY (ARRAY(
    SELECT bucket FROM rate_slots WHERE ends_at < over ORDER BY ends_at LIMIT p_max FOR UPDATE SKIP LOCKED));
  GET DIAGNOSTICS places = ROW_COUNT;
  RETURN greatest(windows, places);
END $$;
