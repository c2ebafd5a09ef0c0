-- Acquires one of p_limit slots in a sliding window of p_window_ms. If none is free, returns the time until the next one is.
CREATE OR REPLACE FUNCTION vatproof.acquire_slot(p_bucket text, p_limit int, p_window_ms bigint)
RETURNS TABLE (granted boolean, free_in_ms bigint) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  window_length CONSTANT interval := p_window_ms * interval '1 millisecond';
  tolerance CONSTANT interval := '1 minute';
  moment timestamptz;
  places timestamptz[];
BEGIN
  -- Locks the row, and keeps sweep_limits from deleting it. If this statement waits for another transaction, the next one sees its changes.
  INSERT INTO rate_slots AS r (bucket, taken_at, ends_at) VALUES (p_bucket, '{}', clock_timestamp() + window_length)
    ON CONFLICT (bucket) DO UPDATE SET ends_at = excluded.ends_at;
  SELECT taken_at INTO places FROM rate_slots WHERE bucket = p_bucket;
  moment := clock_timestamp();
  SELECT coalesce(array_agg(place ORDER BY place), '{}') INTO places FROM unnest(places) AS place
    WHERE place > moment - window_length AND place <= moment + tolerance;
  IF cardinality(places) >= p_limit THEN
    RETURN QUERY SELECT false, CASE WHEN p_limit <= 0 THEN p_window_ms
      ELSE ceil(extract(epoch FROM places[cardinality(places) - p_limit + 1] + window_length - moment) * 1000)::bigint END;
  ELSE
    UPDATE rate_slots SET taken_at = places || moment, ends_at = moment + window_length WHERE bucket = p_bucket;
    RETURN QUERY SELECT true, 0::bigint;
  END IF;
END $$;
