-- Returns the newest answers for VAT IDs, by their keys (`answer-<VAT ID>`), and whether the event at that position names that
-- VAT ID. LIMIT 1 keeps the planner from any join other than key by key.
CREATE OR REPLACE FUNCTION vatproof.newest_answers(p_log smallint, p_key text[])
RETURNS TABLE (key text, "position" bigint, as_of bigint, answer text, of_event boolean) LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
AS $$
BEGIN
  RETURN QUERY SELECT u.key, newest.position, newest.as_of, newest.answer, coalesce(strpos(event.data, '"vat_id":"' || substr(u.key, 8) || '"')
      + strpos(event.data, '"target_vat_id":"' || substr(u.key, 8) || '"') > 0, false)
    FROM unnest(p_key) AS u(key)
    CROSS JOIN LATERAL (SELECT l.position, l.as_of, l.answer FROM latest l WHERE l.log_id = p_log AND l.key = u.key LIMIT 1) AS newest
    LEFT JOIN LATERAL (SELECT e.data FROM events e WHERE e.log_id = p_log AND e.position = newest.position LIMIT 1) AS event ON true;
END $$;
