-- Projections that follow the log: read models that any replica can bring up to date, and that can be rebuilt beside the live one.
-- The projection <name> is the table vatproof.<name>; its migration makes it, grants the service what it needs, and says with
-- comments what it is for.

CREATE TABLE vatproof.projections (
  log_id smallint NOT NULL,
  name text COLLATE "C" NOT NULL,
  version int NOT NULL,
  position bigint NOT NULL DEFAULT 0 CHECK (position >= 0),
  moved_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (log_id, name)
) WITH (fillfactor = 50);
COMMENT ON TABLE vatproof.projections IS 'How far each projection has followed the log. The lock of its row makes one replica at a time move it.';
COMMENT ON COLUMN vatproof.projections.position IS 'The next position to apply: everything below it is in the table.';
COMMENT ON COLUMN vatproof.projections.version IS 'Version of the rules that filled the table; older than the program''s means that a rebuild is due.';

CREATE TABLE vatproof.event_places (
  log_id smallint NOT NULL,
  position bigint NOT NULL,
  type text COLLATE "C" NOT NULL,
  account_id uuid,
  vat_id text COLLATE "C",
  receipt_id text COLLATE "C",
  PRIMARY KEY (log_id, position)
);
CREATE INDEX event_places_type ON vatproof.event_places (log_id, type, position);
CREATE INDEX event_places_account ON vatproof.event_places (log_id, account_id, position) WHERE account_id IS NOT NULL;
CREATE INDEX event_places_vat_id ON vatproof.event_places (log_id, vat_id, position) WHERE vat_id IS NOT NULL;
CREATE INDEX event_places_receipt ON vatproof.event_places (log_id, receipt_id, position) WHERE receipt_id IS NOT NULL;
COMMENT ON TABLE vatproof.event_places IS 'Where to look in the log: the positions of the events of a type, an account, a VAT ID, a receipt. A projection.';

-- Where a moment lies in the log: the first position that was recorded at it or later, the head if there is none. Positions are dense
-- and recorded_at never falls, so this needs no index: thirty looks into a log of a thousand million events.
CREATE FUNCTION vatproof.position_at(p_log smallint, p_moment timestamptz) RETURNS bigint LANGUAGE plpgsql STABLE
SET search_path = vatproof, pg_temp AS $$
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

-- Makes the empty table <name>_next with the columns, indexes, comments and grants of <name>; one left over from before goes away.
CREATE FUNCTION vatproof.begin_rebuild(p_log smallint, p_name text, p_version int) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE permission record;
BEGIN
  PERFORM FROM vatproof.projections WHERE log_id = p_log AND name = p_name FOR UPDATE;
  IF NOT FOUND THEN RAISE EXCEPTION 'there is no projection %', p_name; END IF;
  DELETE FROM vatproof.projections WHERE log_id = p_log AND name = p_name || '_next';
  EXECUTE format('DROP TABLE IF EXISTS vatproof.%I', p_name || '_next');
  EXECUTE format('CREATE TABLE vatproof.%I (LIKE vatproof.%I INCLUDING ALL)', p_name || '_next', p_name);
  FOR permission IN SELECT grantee::regrole AS role, privilege_type FROM pg_class, aclexplode(relacl)
    WHERE oid = format('vatproof.%I', p_name)::regclass AND grantee <> 0 AND grantee <> relowner LOOP
    EXECUTE format('GRANT %s ON vatproof.%I TO %s', permission.privilege_type, p_name || '_next', permission.role);
  END LOOP;
  EXECUTE format('COMMENT ON TABLE vatproof.%I IS %L', p_name || '_next', obj_description(format('vatproof.%I', p_name)::regclass));
  INSERT INTO vatproof.projections (log_id, name, version) VALUES (p_log, p_name || '_next', p_version);
END $$;

-- Puts <name>_next in the place of <name>. The caller has filled it, in this transaction, as far as <name> or farther, and holds the row
-- of <name>. Readers wait for no longer than the renaming takes; views are moved along.
CREATE FUNCTION vatproof.finish_rebuild(p_log smallint, p_name text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  next_name CONSTANT text := p_name || '_next';
  dependents CONSTANT text[] := ARRAY(
    SELECT DISTINCT format('CREATE OR REPLACE VIEW %s AS %s', r.ev_class::regclass, pg_get_viewdef(r.ev_class))
    FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid AND d.classid = 'pg_rewrite'::regclass
    WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = format('vatproof.%I', p_name)::regclass);
  statement text;
BEGIN
  IF (SELECT position FROM vatproof.projections WHERE log_id = p_log AND name = next_name)
    < (SELECT position FROM vatproof.projections WHERE log_id = p_log AND name = p_name)
    THEN RAISE EXCEPTION '% is behind %', next_name, p_name; END IF;
  EXECUTE format('ALTER TABLE vatproof.%I RENAME TO %I', p_name, p_name || '_former');
  EXECUTE format('ALTER TABLE vatproof.%I RENAME TO %I', next_name, p_name);
  FOREACH statement IN ARRAY dependents LOOP EXECUTE statement; END LOOP;
  EXECUTE format('DROP TABLE vatproof.%I', p_name || '_former');
  UPDATE vatproof.projections p SET version = n.version, position = n.position, moved_at = clock_timestamp()
    FROM vatproof.projections n WHERE p.log_id = p_log AND p.name = p_name AND n.log_id = p_log AND n.name = next_name;
  DELETE FROM vatproof.projections WHERE log_id = p_log AND name = next_name;
END $$;

REVOKE ALL ON FUNCTION vatproof.position_at, vatproof.begin_rebuild, vatproof.finish_rebuild FROM PUBLIC;

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'vatproof_service') THEN
    GRANT SELECT, INSERT, UPDATE ON vatproof.projections, vatproof.event_places TO vatproof_service;
    GRANT EXECUTE ON FUNCTION vatproof.position_at TO vatproof_service;
  END IF;
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'vatproof_owner') AND pg_has_role(current_user, 'vatproof_owner', 'MEMBER') THEN
    ALTER TABLE vatproof.projections OWNER TO vatproof_owner;
    ALTER TABLE vatproof.event_places OWNER TO vatproof_owner;
    ALTER FUNCTION vatproof.position_at OWNER TO vatproof_owner;
    ALTER FUNCTION vatproof.begin_rebuild OWNER TO vatproof_owner;
    ALTER FUNCTION vatproof.finish_rebuild OWNER TO vatproof_owner;
  END IF;
EXCEPTION WHEN insufficient_privilege THEN
  RAISE NOTICE 'vatproof_owner cannot own the projections here: %', SQLERRM;
END $$;
