-- Finds the callers of API keys by the SHA-256 of the keys. Omits revoked and unknown keys. ord is the index of the key in p_hash. p_meter is the
-- template of a meter's name: {key} in it is replaced by the id of the key. used is the value of the meter with this name. If the hash belongs to the
-- former secret of a rotated key, valid_until is the time until which this secret is valid; otherwise it is null. LIMIT 1 forces the planner to look
-- up each key by its index.
CREATE OR REPLACE FUNCTION vatproof.find_callers(p_log smallint, p_hash text[], p_meter text)
RETURNS TABLE (ord bigint, key_id uuid, account_id uuid, plan text, per_month bigint, used bigint, epoch bigint, valid_until timestamptz) LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  epoch CONSTANT bigint := (SELECT l.identity_epoch FROM logs l WHERE l.log_id = p_log);
BEGIN
  RETURN QUERY
  SELECT u.ord, k.key_id, k.account_id, a.plan, a.per_month,
    coalesce((SELECT m.used FROM meters m WHERE m.log_id = p_log AND m.meter_id = replace(p_meter, '{key}', k.key_id::text)), 0), epoch, k.valid_until
  FROM unnest(p_hash) WITH ORDINALITY AS u(hash, ord)
  CROSS JOIN LATERAL (
    (SELECT f.key_id, f.account_id, NULL::timestamptz AS valid_until FROM api_keys f
      WHERE f.key_sha256 = decode(u.hash, 'hex') AND f.revoked_at IS NULL LIMIT 1)
    UNION ALL
    (SELECT f.key_id, f.account_id, f.previous_until FROM api_keys f
      WHERE f.previous_sha256 = decode(u.hash, 'hex') AND f.revoked_at IS NULL LIMIT 1)
    LIMIT 1) AS k
  CROSS JOIN LATERAL (SELECT f.plan, f.per_month FROM accounts f WHERE f.account_id = k.account_id LIMIT 1) AS a;
END $$;
