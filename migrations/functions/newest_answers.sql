-- The newest answers about VAT IDs, by their keys.
CREATE OR REPLACE FUNCTION vatproof.newest_answers(p_log smallint, p_key text[])
RETURNS TABLE (key text, "position" bigint, answer text) LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
AS $$
BEGIN
  RETURN QUERY SELECT l.key, l.position, l.answer FROM latest l WHERE l.log_id = p_log AND l.key = ANY (p_key);
END $$;
