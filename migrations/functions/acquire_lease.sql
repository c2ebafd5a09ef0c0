-- Acquires a lease that expires after p_ms. Returns false if another holder has it. A holder that has it already acquires it again.
CREATE OR REPLACE FUNCTION vatproof.acquire_lease(p_bucket text, p_holder uuid, p_ms bigint) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  lease CONSTANT interval := p_ms * interval '1 millisecond';
  tolerance CONSTANT interval := '1 minute';
BEGIN
  -- A lease that ends more than a minute after the end of a new lease was acquired before the clock was set back. It counts as expired.
  INSERT INTO rate_windows AS w (bucket, taken, ends_at, holder) VALUES (p_bucket, 1, clock_timestamp() + lease, p_holder)
    ON CONFLICT (bucket) DO UPDATE SET ends_at = clock_timestamp() + lease, holder = p_holder
    WHERE w.holder = p_holder OR w.ends_at <= clock_timestamp() OR w.ends_at > clock_timestamp() + lease + tolerance;
  RETURN FOUND;
END $$;
