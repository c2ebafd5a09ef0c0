-- Creates the empty table <name>_next with the columns, comments and grants of <name>, and drops one left over from before. Its indexes are
-- built from the whole table once it is filled.
CREATE OR REPLACE FUNCTION vatproof.begin_rebuild(p_log smallint, p_name text, p_version int) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE permission record;
BEGIN
  PERFORM FROM vatproof.projections WHERE log_id = p_log AND name = p_name FOR UPDATE;
  IF NOT FOUND THEN RAISE EXCEPTION 'there is no projection %', p_name; END IF;
  DELETE FROM vatproof.projections WHERE log_id = p_log AND name = p_name || '_next';
  EXECUTE format('DROP TABLE IF EXISTS vatproof.%I', p_name || '_next');
  EXECUTE format('CREATE TABLE vatproof.%I (LIKE vatproof.%I INCLUDING ALL EXCLUDING INDEXES)', p_name || '_next', p_name);
  FOR permission IN SELECT grantee::regrole AS role, privilege_type FROM pg_class, aclexplode(relacl)
    WHERE oid = format('vatproof.%I', p_name)::regclass AND grantee <> 0 AND grantee <> relowner LOOP
    EXECUTE format('GRANT %s ON vatproof.%I TO %s', permission.privilege_type, p_name || '_next', permission.role);
  END LOOP;
  EXECUTE format('COMMENT ON TABLE vatproof.%I IS %L', p_name || '_next', obj_description(format('vatproof.%I', p_name)::regclass));
  INSERT INTO vatproof.projections (log_id, name, version) VALUES (p_log, p_name || '_next', p_version);
END $$;

-- Gives <name>_next the keys and indexes of <name>; does nothing if it has them.
CREATE OR REPLACE FUNCTION vatproof.index_rebuild(p_name text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET maintenance_work_mem = '128MB' AS $$
DECLARE
  live CONSTANT regclass := format('vatproof.%I', p_name)::regclass;
  next_table CONSTANT regclass := format('vatproof.%I', p_name || '_next')::regclass;
  statement text;
BEGIN
  IF EXISTS (SELECT FROM pg_index WHERE indrelid = next_table) THEN RETURN; END IF;
  FOR statement IN
    SELECT coalesce(
      (SELECT format('ALTER TABLE %s ADD %s', next_table, pg_get_constraintdef(c.oid)) FROM pg_constraint c
        WHERE c.conindid = i.indexrelid AND c.conrelid = live AND c.contype IN ('p', 'u')),
      regexp_replace(pg_get_indexdef(i.indexrelid), '^(CREATE (?:UNIQUE )?INDEX) .*? ON .*? (USING .*)$', format('\1 ON %s \2', next_table)))
    FROM pg_index i WHERE i.indrelid = live ORDER BY i.indexrelid
  LOOP EXECUTE statement; END LOOP;
  EXECUTE format('ANALYZE %s', next_table);
END $$;

-- Replaces <name> by <name>_next. The caller has filled it, in this transaction, as far as <name> or farther, and holds the row of <name>.
-- Readers wait only for the renaming; views follow.
CREATE OR REPLACE FUNCTION vatproof.finish_rebuild(p_log smallint, p_name text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
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
  PERFORM vatproof.index_rebuild(p_name);
  EXECUTE format('ALTER TABLE vatproof.%I RENAME TO %I', p_name, p_name || '_former');
  EXECUTE format('ALTER TABLE vatproof.%I RENAME TO %I', next_name, p_name);
  FOREACH statement IN ARRAY dependents LOOP EXECUTE statement; END LOOP;
  EXECUTE format('DROP TABLE vatproof.%I', p_name || '_former');
  UPDATE vatproof.projections p SET version = n.version, position = n.position, moved_at = clock_timestamp()
    FROM vatproof.projections n WHERE p.log_id = p_log AND p.name = p_name AND n.log_id = p_log AND n.name = next_name;
  DELETE FROM vatproof.projections WHERE log_id = p_log AND name = next_name;
END $$;
