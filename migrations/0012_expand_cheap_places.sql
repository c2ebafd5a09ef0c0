-- What follows the log shares the machine with what answers requests, so an event must cost the projection event_places little.
-- Nearly all events are VatIdVerified. They are in no index by type and by account any more: the former would be the log once more, and
-- the latter is there already, since accounts have keys, keys have streams, and the log has an index by stream and version. And VAT IDs
-- are indexed in segments of 2^18 positions: new entries go to the newest segment only, which stays in memory however long the log gets.

DO $$
DECLARE
  -- A rebuilt table has its indexes under other names, so they are told by what they are.
  former CONSTANT regclass[] := ARRAY(SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 'vatproof.event_places'::regclass
    AND NOT indisprimary AND pg_get_indexdef(indexrelid) !~ '\(log_id, receipt_id, "?position"?\)');
  index regclass;
BEGIN
  CREATE INDEX ON vatproof.event_places (log_id, type, position) WHERE type <> 'VatIdVerified';
  CREATE INDEX ON vatproof.event_places (log_id, account_id, position) WHERE account_id IS NOT NULL AND type <> 'VatIdVerified';
  CREATE INDEX ON vatproof.event_places (log_id, ((position >> 18)::int), vat_id) WHERE vat_id IS NOT NULL;
  -- The former ones go last: readers wait for no longer than that takes.
  FOREACH index IN ARRAY former LOOP EXECUTE format('DROP INDEX %s', index); END LOOP;
END $$;

-- The first version of a stream that is at a position or above it; the next one to come if there is none. Versions are dense, and a
-- stream's positions rise with them, so this needs no index of its own.
CREATE FUNCTION vatproof.version_at(p_log smallint, p_stream text, p_position bigint) RETURNS bigint LANGUAGE plpgsql STABLE
SET search_path = vatproof, pg_temp AS $$
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

-- Up to p_limit positions from p_from up to p_to of events about a VAT ID, the lowest first; null stands for any account and any type.
CREATE FUNCTION vatproof.places_of_vat_id(
  p_log smallint, p_vat_id text, p_account uuid, p_type text, p_from bigint, p_to bigint, p_limit int
) RETURNS SETOF bigint LANGUAGE plpgsql STABLE SET search_path = vatproof, pg_temp SET jit = off AS $$
DECLARE
  wanted int := p_limit;
  found_here int;
BEGIN
  FOR segment IN (p_from >> 18)::int .. ((p_to - 1) >> 18)::int LOOP
    -- Nothing but its own index is of use for the inner part, whatever the planner thinks of the order.
    RETURN QUERY SELECT p.position FROM (
        SELECT position, account_id, type FROM event_places
        WHERE log_id = p_log AND (position >> 18)::int = segment AND vat_id = p_vat_id OFFSET 0) p
      WHERE p.position >= p_from AND p.position < p_to
        AND (p_account IS NULL OR p.account_id = p_account) AND (p_type IS NULL OR p.type = p_type)
      ORDER BY p.position LIMIT wanted;
    GET DIAGNOSTICS found_here = ROW_COUNT;
    wanted := wanted - found_here;
    EXIT WHEN wanted <= 0;
  END LOOP;
END $$;

-- The views find a VAT ID by these segments, and the validations of an account by its keys.
CREATE VIEW vatproof.place_segments AS
  SELECT l.log_id, s.segment FROM vatproof.logs l CROSS JOIN LATERAL generate_series(0, (l.next_position >> 18)::int) AS s(segment);
COMMENT ON VIEW vatproof.place_segments IS 'The segments of event_places: each has 2^18 positions.';

CREATE OR REPLACE VIEW audit.receipts AS
  SELECT e.position, e.recorded_at, p.receipt_id, p.account_id, (d.data ->> 'key_id')::uuid AS key_id, p.vat_id AS target_vat_id,
    d.data #>> '{receipt,requester_vat_id}' AS requester_vat_id,
    d.data #>> '{receipt,input,company_name}' AS company_name, d.data #>> '{receipt,input,company_street}' AS company_street,
    d.data #>> '{receipt,input,company_zip}' AS company_zip, d.data #>> '{receipt,input,company_city}' AS company_city,
    (d.data #>> '{receipt,result,valid}')::boolean AS valid,
    d.data #>> '{receipt,result,name_match}' AS name_match, d.data #>> '{receipt,result,street_match}' AS street_match,
    d.data #>> '{receipt,result,zip_match}' AS zip_match, d.data #>> '{receipt,result,city_match}' AS city_match,
    d.data #>> '{receipt,result,official_name}' AS official_name, d.data #>> '{receipt,result,official_address}' AS official_address,
    d.data #>> '{receipt,bzst_request_id}' AS bzst_request_id, (d.data #>> '{receipt,issued_at}')::timestamptz AS issued_at,
    d.data #>> '{receipt,source}' AS source,
    d.data #>> '{answer,code}' AS bzst_status, (d.data #>> '{answer,answered_at}')::timestamptz AS bzst_answered_at,
    d.data #>> '{answer,evidence,request}' AS bzst_request, d.data #>> '{answer,evidence,response}' AS bzst_response,
    d.data #>> '{answer,evidence,response_sha256}' AS bzst_response_sha256,
    (d.data #>> '{answer,evidence,http_status}')::int AS bzst_http_status
  FROM vatproof.event_places p
  JOIN vatproof.place_segments s ON s.log_id = p.log_id AND s.segment = (p.position >> 18)::int
  JOIN vatproof.events e ON e.log_id = p.log_id AND e.position = p.position
  CROSS JOIN LATERAL (SELECT e.data::jsonb AS data) d
  WHERE p.type = 'ReceiptIssued';

CREATE OR REPLACE VIEW audit.verifications AS
  SELECT e.position, e.recorded_at, e.occurred_at, e.stream_id, k.account_id, p.vat_id,
    CASE WHEN p.type = 'VatIdVerified' THEN 'answered' ELSE 'unavailable' END AS outcome,
    (d.data ->> 'valid')::boolean AS valid, d.data ->> 'source' AS source, d.data ->> 'served' AS served,
    (d.data ->> 'answered_at')::timestamptz AS answered_at, (d.data ->> 'answer_position')::bigint AS answer_position,
    (d.data ->> 'force_live')::boolean AS force_live, d.data ->> 'requester_vat_id' AS requester_vat_id,
    e.meter_id, e.units, d.data -> 'answer' AS answer, d.data -> 'attempts' AS attempts
  FROM vatproof.event_places p
  JOIN vatproof.place_segments s ON s.log_id = p.log_id AND s.segment = (p.position >> 18)::int
  JOIN vatproof.events e ON e.log_id = p.log_id AND e.position = p.position
  LEFT JOIN vatproof.api_keys k ON e.stream_id = 'key-' || k.key_id::text
  CROSS JOIN LATERAL (SELECT e.data::jsonb AS data) d
  WHERE p.type IN ('VatIdVerified', 'VatIdVerificationFailed');

-- As in 0007, but without indexes: they are made from the whole table at once when it is filled.
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

-- Gives <name>_next the keys and indexes of <name>; nothing happens if it has them.
CREATE FUNCTION vatproof.index_rebuild(p_name text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
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

REVOKE ALL ON FUNCTION vatproof.version_at, vatproof.places_of_vat_id, vatproof.index_rebuild FROM PUBLIC;

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'vatproof_service') THEN
    GRANT EXECUTE ON FUNCTION vatproof.version_at, vatproof.places_of_vat_id TO vatproof_service;
  END IF;
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'vatproof_owner') AND pg_has_role(current_user, 'vatproof_owner', 'MEMBER') THEN
    ALTER VIEW vatproof.place_segments OWNER TO vatproof_owner;
    ALTER FUNCTION vatproof.version_at OWNER TO vatproof_owner;
    ALTER FUNCTION vatproof.places_of_vat_id OWNER TO vatproof_owner;
    ALTER FUNCTION vatproof.index_rebuild OWNER TO vatproof_owner;
  END IF;
EXCEPTION WHEN insufficient_privilege THEN
  RAISE NOTICE 'vatproof_owner cannot own the new parts of the projections here: %', SQLERRM;
END $$;
