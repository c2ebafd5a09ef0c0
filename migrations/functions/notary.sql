-- Acquires or renews the notary's lease. Returns whether p_holder has the lease, the number of events under the newest checkpoint, and the
-- number of events in the log.
CREATE OR REPLACE FUNCTION vatproof.claim_notary(p_log smallint, p_holder uuid, p_lease_ms bigint)
RETURNS TABLE (granted boolean, size bigint, head bigint) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_sort = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  moment CONSTANT timestamptz := clock_timestamp();
  mine boolean;
BEGIN
  -- Renews a lease only after half of its time, so that the notary of an idle log does not write every second.
  SELECT holder = p_holder AND held_until > moment + p_lease_ms / 2 * interval '1 millisecond' INTO mine FROM notaries WHERE log_id = p_log;
  IF mine IS NOT TRUE THEN
    UPDATE notaries SET holder = p_holder, held_until = moment + p_lease_ms * interval '1 millisecond'
      WHERE log_id = p_log AND (holder IS NULL OR holder = p_holder OR held_until <= moment
        OR held_until > moment + 2 * p_lease_ms * interval '1 millisecond');
    mine := FOUND;
  END IF;
  RETURN QUERY SELECT mine, coalesce((SELECT c.size FROM checkpoints c WHERE c.log_id = p_log ORDER BY c.size DESC LIMIT 1), 0), l.next_position
    FROM logs l WHERE l.log_id = p_log;
END $$;

-- Releases the lease if p_holder has it.
CREATE OR REPLACE FUNCTION vatproof.release_notary(p_log smallint, p_holder uuid) RETURNS void LANGUAGE sql SECURITY DEFINER
SET search_path = vatproof, pg_temp AS $$
  UPDATE notaries SET holder = NULL, held_until = '-infinity' WHERE log_id = p_log AND holder = p_holder
$$;

-- Stores a signed checkpoint of p_size events, and the hashes that the tiles gained since the previous checkpoint, of p_from events. p_hashes[i] is
-- appended to the tile (p_level[i], p_index[i]), which already has p_offset[i] hashes. Returns false and stores nothing if the newest checkpoint does
-- not have p_from events. p_from is -1 for the first checkpoint, which covers at most the event that opened the log.
CREATE OR REPLACE FUNCTION vatproof.notarize(
  p_log smallint, p_from bigint, p_size bigint, p_note text,
  p_level smallint[], p_index bigint[], p_offset int[], p_hashes bytea[]
) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_sort = off SET jit = off
AS $$
BEGIN
  PERFORM FROM notaries WHERE log_id = p_log FOR UPDATE;
  IF coalesce((SELECT size FROM checkpoints WHERE log_id = p_log ORDER BY size DESC LIMIT 1), -1) <> p_from THEN RETURN false; END IF;
  IF p_size <= p_from OR p_from = -1 AND p_size > 1 OR p_size > (SELECT next_position FROM logs WHERE log_id = p_log) THEN
    RAISE EXCEPTION 'a checkpoint of % events cannot follow the checkpoint of % events', p_size, p_from;
  END IF;
  IF EXISTS (SELECT FROM unnest(p_level, p_index, p_offset) AS g(level, index, start) WHERE g.start * 32 <> coalesce(
    (SELECT octet_length(t.hashes) FROM tiles t WHERE t.log_id = p_log AND t.level = g.level AND t.index = g.index), 0))
  THEN RAISE EXCEPTION 'the tile updates do not fit the stored tiles, which cover % events', p_from; END IF;
  -- An UPDATE … FROM might scan all tiles; INSERT … ON CONFLICT uses the primary key.
  INSERT INTO tiles AS t (log_id, level, index, hashes)
    SELECT p_log, g.level, g.index, g.hashes FROM unnest(p_level, p_index, p_hashes) AS g(level, index, hashes)
    ON CONFLICT (log_id, level, index) DO UPDATE SET hashes = t.hashes || excluded.hashes;
  INSERT INTO checkpoints (log_id, size, note) VALUES (p_log, p_size, p_note);
  RETURN true;
END $$;
