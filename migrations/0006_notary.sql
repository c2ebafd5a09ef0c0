-- The notary's tables: the log's Merkle tree in tiles (c2sp.org/tlog-tiles), and the checkpoints that were signed over it
-- (c2sp.org/tlog-checkpoint). Both only grow. The signing key is not in the database: who rewrites events and tiles here cannot
-- sign what comes of it.

CREATE TABLE vatproof.tiles (
  log_id smallint NOT NULL,
  level smallint NOT NULL CHECK (level BETWEEN 0 AND 63),
  index bigint NOT NULL CHECK (index >= 0),
  hashes bytea NOT NULL CHECK (octet_length(hashes) BETWEEN 32 AND 8192 AND octet_length(hashes) % 32 = 0),
  PRIMARY KEY (log_id, level, index)
);
-- A full tile is 8 KiB of hashes: compressing them is lost work.
ALTER TABLE vatproof.tiles ALTER COLUMN hashes SET STORAGE EXTERNAL;
COMMENT ON TABLE vatproof.tiles IS 'Nodes of the Merkle tree over the positions: up to 256 neighbours of level 8*level, 32 bytes each. A tile grows at its end only.';

CREATE TABLE vatproof.checkpoints (
  log_id smallint NOT NULL,
  size bigint NOT NULL CHECK (size > 0),
  root bytea NOT NULL CHECK (octet_length(root) = 32),
  note text NOT NULL,
  signed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (log_id, size)
);
COMMENT ON TABLE vatproof.checkpoints IS 'What was signed: the log had this many events, and their Merkle root was this.';
COMMENT ON COLUMN vatproof.checkpoints.note IS 'The signed note, exactly as it was given to the world.';

-- Who signs now. Nothing depends on it but that the work is not done twice: notarize() refuses whoever does not continue the newest checkpoint.
CREATE TABLE vatproof.notaries (
  log_id smallint PRIMARY KEY,
  holder uuid,
  held_until timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50);
INSERT INTO vatproof.notaries (log_id) VALUES (0);

CREATE FUNCTION vatproof.refuse_rewrite() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND TG_TABLE_NAME = 'tiles' THEN
    IF OLD.log_id = NEW.log_id AND OLD.level = NEW.level AND OLD.index = NEW.index
      AND substr(NEW.hashes, 1, octet_length(OLD.hashes)) = OLD.hashes THEN RETURN NEW; END IF;
  END IF;
  RAISE EXCEPTION 'vatproof.% is append-only: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON vatproof.tiles FOR EACH ROW EXECUTE FUNCTION vatproof.refuse_rewrite();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON vatproof.tiles FOR EACH STATEMENT EXECUTE FUNCTION vatproof.refuse_rewrite();
ALTER TABLE vatproof.tiles ENABLE ALWAYS TRIGGER append_only, ENABLE ALWAYS TRIGGER append_only_truncate;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON vatproof.checkpoints FOR EACH ROW EXECUTE FUNCTION vatproof.refuse_rewrite();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON vatproof.checkpoints FOR EACH STATEMENT EXECUTE FUNCTION vatproof.refuse_rewrite();
ALTER TABLE vatproof.checkpoints ENABLE ALWAYS TRIGGER append_only, ENABLE ALWAYS TRIGGER append_only_truncate;

-- As in 0003, and for the tables above as well.
CREATE OR REPLACE FUNCTION vatproof_guard.refuse_drop() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE refused text;
BEGIN
  SELECT object_identity INTO refused FROM pg_event_trigger_dropped_objects()
    WHERE object_identity ~ '^vatproof\.(events|tiles|checkpoints)|^append_only\S* on vatproof\.|^vatproof\.refuse_|^vatproof_guard' LIMIT 1;
  IF refused IS NOT NULL THEN
    RAISE EXCEPTION 'vatproof is append-only: dropping % is refused', refused USING ERRCODE = 'insufficient_privilege';
  END IF;
END $$;

-- Takes the notary's place, or keeps it, for a while; says who has it, how far the log is signed and how long it is.
CREATE FUNCTION vatproof.claim_notary(p_log smallint, p_holder uuid, p_lease_ms bigint)
RETURNS TABLE (granted boolean, size bigint, head bigint) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = vatproof, pg_temp AS $$
#variable_conflict use_column
DECLARE
  moment CONSTANT timestamptz := clock_timestamp();
  mine boolean;
BEGIN
  -- Renewed only when half of it is over, so that a quiet log writes nothing each second.
  SELECT holder = p_holder AND held_until > moment + p_lease_ms / 2 * interval '1 millisecond' INTO mine FROM notaries WHERE log_id = p_log;
  IF mine IS NOT TRUE THEN
    UPDATE notaries SET holder = p_holder, held_until = moment + p_lease_ms * interval '1 millisecond'
      WHERE log_id = p_log AND (holder IS NULL OR holder = p_holder OR held_until <= moment);
    mine := FOUND;
  END IF;
  RETURN QUERY SELECT mine, coalesce((SELECT max(c.size) FROM checkpoints c WHERE c.log_id = p_log), 0), l.next_position
    FROM logs l WHERE l.log_id = p_log;
END $$;

CREATE FUNCTION vatproof.release_notary(p_log smallint, p_holder uuid) RETURNS void LANGUAGE sql SECURITY DEFINER
SET search_path = vatproof, pg_temp AS $$
  UPDATE notaries SET holder = NULL, held_until = '-infinity' WHERE log_id = p_log AND holder = p_holder
$$;

-- Stores a signed checkpoint of p_size events and what the tiles grow by since the one of p_from events: element i of the arrays adds
-- p_hashes[i] to tile (p_level[i], p_index[i]), which has p_offset[i] hashes before. False, and nothing is stored, if the newest
-- checkpoint is not that of p_from events any more.
CREATE FUNCTION vatproof.notarize(
  p_log smallint, p_from bigint, p_size bigint, p_root bytea, p_note text,
  p_level smallint[], p_index bigint[], p_offset int[], p_hashes bytea[]
) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = vatproof, pg_temp AS $$
DECLARE
  begun CONSTANT int := (SELECT count(*) FROM unnest(p_offset) AS o WHERE o = 0);
  changed int;
BEGIN
  PERFORM FROM notaries WHERE log_id = p_log FOR UPDATE;
  IF coalesce((SELECT max(size) FROM checkpoints WHERE log_id = p_log), 0) <> p_from THEN RETURN false; END IF;
  IF p_size <= p_from OR p_size > (SELECT next_position FROM logs WHERE log_id = p_log) THEN
    RAISE EXCEPTION 'a checkpoint of % events does not continue one of %', p_size, p_from;
  END IF;
  UPDATE tiles t SET hashes = t.hashes || g.hashes
    FROM unnest(p_level, p_index, p_offset, p_hashes) AS g(level, index, start, hashes)
    WHERE t.log_id = p_log AND t.level = g.level AND t.index = g.index AND g.start > 0 AND octet_length(t.hashes) = g.start * 32;
  GET DIAGNOSTICS changed = ROW_COUNT;
  IF changed <> cardinality(p_offset) - begun THEN RAISE EXCEPTION 'the tiles do not continue at % events', p_from; END IF;
  INSERT INTO tiles (log_id, level, index, hashes)
    SELECT p_log, g.level, g.index, g.hashes FROM unnest(p_level, p_index, p_offset, p_hashes) AS g(level, index, start, hashes) WHERE g.start = 0;
  INSERT INTO checkpoints (log_id, size, root, note) VALUES (p_log, p_size, p_root, p_note);
  RETURN true;
END $$;

REVOKE ALL ON FUNCTION vatproof.claim_notary, vatproof.release_notary, vatproof.notarize FROM PUBLIC;

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'vatproof_service') THEN
    GRANT SELECT ON vatproof.tiles, vatproof.checkpoints, vatproof.notaries TO vatproof_service;
    GRANT EXECUTE ON FUNCTION vatproof.claim_notary, vatproof.release_notary, vatproof.notarize TO vatproof_service;
  END IF;
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'vatproof_owner') AND pg_has_role(current_user, 'vatproof_owner', 'MEMBER') THEN
    ALTER TABLE vatproof.tiles OWNER TO vatproof_owner;
    ALTER TABLE vatproof.checkpoints OWNER TO vatproof_owner;
    ALTER TABLE vatproof.notaries OWNER TO vatproof_owner;
    ALTER FUNCTION vatproof.refuse_rewrite OWNER TO vatproof_owner;
    ALTER FUNCTION vatproof.claim_notary OWNER TO vatproof_owner;
    ALTER FUNCTION vatproof.release_notary OWNER TO vatproof_owner;
    ALTER FUNCTION vatproof.notarize OWNER TO vatproof_owner;
  END IF;
EXCEPTION WHEN insufficient_privilege THEN
  RAISE NOTICE 'vatproof_owner cannot own the notary''s tables here: %', SQLERRM;
END $$;
