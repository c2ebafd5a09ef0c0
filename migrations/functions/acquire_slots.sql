-- Acquires a slot, the right to make one call, in each bucket. A bucket has p_limit slots in a sliding window of p_window_ms. If one of the buckets
-- has no free slot, the function acquires no slot and returns the time until every bucket has a free slot. With p_look, the function only checks for
-- free slots and acquires none.
CREATE OR REPLACE FUNCTION vatproof.acquire_slots(p_bucket text[], p_limit int, p_window_ms bigint, p_look boolean)
RETURNS TABLE (granted boolean, free_in_ms bigint) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  window_length CONSTANT interval := p_window_ms * interval '1 millisecond';
  tolerance CONSTANT interval := '1 minute';
  moment timestamptz := clock_timestamp();
  wait_ms bigint;
BEGIN
  IF NOT p_look THEN
    -- This INSERT locks the rows until the commit, so that sweep_limits does not delete them. All callers lock the rows in the same order, which
    -- prevents deadlocks. If the INSERT waits for another transaction, the following statements see the changes of that transaction.
    INSERT INTO rate_slots AS r (bucket, taken_at, ends_at)
      SELECT DISTINCT wanted, '{}'::timestamptz[], moment + window_length FROM unnest(p_bucket) AS wanted ORDER BY wanted
      ON CONFLICT (bucket) DO UPDATE SET ends_at = greatest(r.ends_at, excluded.ends_at);
    moment := clock_timestamp();
  END IF;
  SELECT max(CASE WHEN p_limit <= 0 THEN p_window_ms
      ELSE ceil(extract(epoch FROM recent.places[cardinality(recent.places) - p_limit + 1] + window_length - moment) * 1000)::bigint END)
    INTO wait_ms
    FROM rate_slots r
    CROSS JOIN LATERAL (SELECT coalesce(array_agg(place ORDER BY place), '{}') AS places
      FROM unnest(r.taken_at) AS place WHERE place > moment - window_length AND place <= moment + tolerance) AS recent
    WHERE r.bucket = ANY (p_bucket) AND cardinality(recent.places) >= p_limit;
  IF wait_ms IS NOT NULL THEN
    RETURN QUERY SELECT false, wait_ms;
    RETURN;
  END IF;
  IF NOT p_look THEN
    UPDATE rate_slots r SET ends_at = moment + window_length,
      taken_at = ARRAY(SELECT place FROM unnest(r.taken_at) AS place
        WHERE place > moment - window_length AND place <= moment + tolerance ORDER BY place) || moment
      WHERE r.bucket = ANY (p_bucket);
  END IF;
  RETURN QUERY SELECT true, 0::bigint;
END $$;
