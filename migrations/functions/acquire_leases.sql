-- Acquires leases, and releases those whose p_ms is 0. The parameters and the result have one element per lease; p_ms is its length. An element of the
-- result is false if another holder has the lease. A holder that has it already acquires it again. If the parameters name a bucket twice, a release
-- comes first, and the function acquires no second lease on the bucket.
CREATE OR REPLACE FUNCTION vatproof.acquire_leases(p_buckets text[], p_holders uuid[], p_ms bigint[]) RETURNS boolean[] LANGUAGE plpgsql SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  moment CONSTANT timestamptz := clock_timestamp();
  tolerance CONSTANT interval := '1 minute';
  holders jsonb;
BEGIN
  -- All callers lock the rows in the order of their names, which prevents deadlocks. A lease that ends more than a minute after the end of a new lease
  -- was acquired before the clock was set back. It counts as expired.
  WITH held AS (
    INSERT INTO rate_windows AS w (bucket, taken, ends_at, holder)
    SELECT DISTINCT ON (u.bucket) u.bucket, 1, moment + u.ms * interval '1 millisecond', u.holder
      FROM unnest(p_buckets, p_holders, p_ms) AS u(bucket, holder, ms) ORDER BY u.bucket, u.ms
    ON CONFLICT (bucket) DO UPDATE SET ends_at = excluded.ends_at, holder = excluded.holder
      WHERE w.holder = excluded.holder OR excluded.ends_at > moment AND (w.ends_at <= moment OR w.ends_at > excluded.ends_at + tolerance)
    RETURNING w.bucket, w.holder)
  SELECT coalesce(jsonb_object_agg(h.bucket, h.holder), '{}') INTO holders FROM held h;
  RETURN ARRAY(SELECT coalesce(holders ->> u.bucket = u.holder::text, false) FROM unnest(p_buckets, p_holders) WITH ORDINALITY AS u(bucket, holder, ord) ORDER BY u.ord);
END $$;
