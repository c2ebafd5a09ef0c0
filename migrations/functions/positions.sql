-- Returns the position of the first event that was recorded at p_moment or later. If all events are earlier, returns the next position of the log.
-- Positions have no gaps and recorded_at never decreases, so a binary search needs no index: 30 steps for 10^9 events.
CREATE OR REPLACE FUNCTION vatproof.position_at(p_log smallint, p_moment timestamptz) RETURNS bigint LANGUAGE plpgsql STABLE
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  low bigint := 0;
  high bigint := (SELECT next_position FROM logs WHERE log_id = p_log);
  middle bigint;
BEGIN
  WHILE low < high LOOP
    middle := (low + high) / 2;
    IF (SELECT recorded_at FROM events WHERE log_id = p_log AND position = middle) < p_moment
      THEN low := middle + 1; ELSE high := middle; END IF;
  END LOOP;
  RETURN low;
END $$;

-- Returns the version of the first event of a stream at p_position or a higher position. If all events of the stream are at lower positions, returns
-- the next version of the stream. Versions have no gaps and positions increase with them, so a binary search finds the event.
CREATE OR REPLACE FUNCTION vatproof.version_at(p_log smallint, p_stream text, p_position bigint) RETURNS bigint LANGUAGE plpgsql STABLE
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  low bigint := 1;
  high bigint := coalesce((SELECT version + 1 FROM streams WHERE log_id = p_log AND stream_id = p_stream), 1);
  middle bigint;
BEGIN
  WHILE low < high LOOP
    middle := (low + high) / 2;
    IF (SELECT position FROM events WHERE log_id = p_log AND stream_id = p_stream AND version = middle) < p_position
      THEN low := middle + 1; ELSE high := middle; END IF;
  END LOOP;
  RETURN low;
END $$;

-- Returns up to p_limit positions of events about a VAT ID, the lowest first, from p_from (inclusive) to p_to (exclusive). A filter that is null
-- (p_account, p_key, p_type) matches every event.
CREATE OR REPLACE FUNCTION vatproof.positions_of_vat_id(
  p_log smallint, p_vat_id text, p_account uuid, p_key uuid, p_type text, p_from bigint, p_to bigint, p_limit int
) RETURNS SETOF bigint LANGUAGE plpgsql STABLE
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off
-- With page costs of zero the planner compares only numbers of rows, so even with stale statistics it chooses the index by VAT ID.
SET random_page_cost = 0 SET seq_page_cost = 0
AS $$
DECLARE
  wanted int := p_limit;
  keys CONSTANT uuid[] := ARRAY(SELECT k.key_id FROM api_keys k WHERE k.account_id = p_account);
  found_here int;
BEGIN
  FOR segment IN (p_from >> 18)::int .. ((p_to - 1) >> 18)::int LOOP
    -- OFFSET 0 keeps the planner from merging the inner query into the outer query, so the inner query uses the index by VAT ID.
    RETURN QUERY SELECT p.position FROM (
        SELECT position, account_id, key_id, type FROM event_index
        WHERE log_id = p_log AND (position >> 18)::int = segment AND vat_id = p_vat_id OFFSET 0) p
      WHERE p.position >= p_from AND p.position < p_to
        AND (p_account IS NULL OR coalesce(p.account_id = p_account, p.key_id = ANY (keys))) AND (p_key IS NULL OR p.key_id = p_key) AND (p_type IS NULL OR p.type = p_type)
      ORDER BY p.position LIMIT wanted;
    GET DIAGNOSTICS found_here = ROW_COUNT;
    wanted := wanted - found_here;
    EXIT WHEN wanted <= 0;
  END LOOP;
END $$;
