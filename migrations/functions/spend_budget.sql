-- Spends p_calls of a daily budget (UTC, by the database's clock) if the total stays within p_limit. Returns the total of the day in spent.
-- With p_calls 0 it only reads the total.
CREATE OR REPLACE FUNCTION vatproof.spend_budget(p_budget text, p_calls int, p_limit bigint)
RETURNS TABLE (granted boolean, spent bigint, ends_in_ms bigint) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  present CONSTANT timestamptz := clock_timestamp();
  day CONSTANT timestamp := date_trunc('day', present AT TIME ZONE 'UTC');
  ends CONSTANT timestamptz := (day + interval '1 day') AT TIME ZONE 'UTC';
  name CONSTANT text := 'budget/' || p_budget || '/' || to_char(day, 'YYYY-MM-DD');
BEGIN
  -- The commit does not wait for the disk. In return, a crash may lose the last counts.
  PERFORM set_config('synchronous_commit', 'off', true);
  INSERT INTO rate_windows AS w (bucket, taken, ends_at) SELECT name, p_calls, ends WHERE p_calls > 0 AND p_calls <= p_limit
    ON CONFLICT (bucket) DO UPDATE SET taken = w.taken + excluded.taken WHERE w.taken + excluded.taken <= p_limit
    RETURNING w.taken INTO spent;
  granted := FOUND;
  IF NOT granted THEN spent := coalesce((SELECT w.taken FROM rate_windows w WHERE w.bucket = name), 0); END IF;
  ends_in_ms := ceil(extract(epoch FROM ends - present) * 1000);
  RETURN NEXT;
END $$;
