-- Deletes up to p_max rate windows and up to p_max rows of slots that ended more than a minute ago. Returns the larger of both numbers: if it is
-- p_max, more rows may be left in one of the tables, and the caller must call again. Skips locked rows, which the next call deletes: other
-- functions lock several rows in the order of their names, so waiting here could cause a deadlock.
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
