-- Returns the newest answers for VAT IDs by their keys (`answer-<VAT ID>`). of_event is true if the stored answer agrees with its event and personal
-- document. LIMIT 1 forces a nested loop over the keys.
CREATE OR REPLACE FUNCTION vatproof.newest_answers(p_log smallint, p_key text[])
RETURNS TABLE (key text, "position" bigint, as_of bigint, answer text, of_event boolean) LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
AS $$
BEGIN
  RETURN QUERY SELECT u.key, newest.position, newest.as_of, newest.answer, made.answer IS NOT NULL
    FROM unnest(p_key) AS u(key)
    CROSS JOIN LATERAL (SELECT l.position, l.as_of, l.answered_at, l.answer FROM latest l WHERE l.log_id = p_log AND l.key = u.key LIMIT 1) AS newest
    LEFT JOIN LATERAL (SELECT r.answer FROM latest_rows(p_log, newest.position, newest.position + 1) r WHERE r.key = u.key
      AND r.as_of = newest.as_of AND r.answered_at = newest.answered_at AND r.answer = newest.answer LIMIT 1) AS made ON true;
END $$;
