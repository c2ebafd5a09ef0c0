-- Describes the schema that the files of this folder create, as text: for each object a line with its kind and name, and indented lines with its
-- properties. schema.txt is the result after all migrations. `audit verify`, the scrubber, `migrate` and each start compare a database with it.
--
-- The text is the same on each supported version of Postgres. Under another search path than pg_catalog, operators of an attacker could change it.
--
-- Shown as "administrator": superusers, and the role that migrates. Left out: rights of owners, and the rights of further roles to read the views
-- for auditors. Functions and views have the SHA-256 of their text, because that text is in the other files.
WITH
  spaces AS (SELECT oid, nspname, nspowner, nspacl FROM pg_namespace WHERE nspname IN ('vatproof', 'vatproof_guard', 'audit')),
  administrators AS (SELECT r.oid, r.rolname, r.rolsuper FROM pg_roles r WHERE r.rolsuper OR r.oid = (SELECT c.relowner FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public' AND c.relname = 'vatproof_migrations')),
  roles AS (SELECT r.oid, CASE WHEN EXISTS (SELECT FROM administrators a WHERE a.oid = r.oid) THEN 'administrator' ELSE r.rolname::text END AS name
    FROM pg_roles r UNION ALL SELECT 0, 'PUBLIC'),
  own_roles AS (SELECT oid, rolname FROM pg_roles WHERE rolname IN ('vatproof_owner', 'vatproof_service', 'vatproof_auditor')),
  objects AS (
    SELECT 'migrations' AS kind, 0 AS oid, '' AS name, 0 AS owner, NULL::aclitem[] AS acl, 'pg_class'::regclass AS class, max(m.name) AS details
      FROM public.vatproof_migrations m WHERE m.name ~ '^\d{4}_'
    UNION ALL SELECT 'schema', n.oid, format('%I', n.nspname), n.nspowner, coalesce(n.nspacl, acldefault('n', n.nspowner)), 'pg_namespace'::regclass, ''
      FROM spaces n
    UNION ALL SELECT CASE WHEN c.relispartition THEN 'partition' ELSE CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view'
          WHEN 'S' THEN 'sequence' WHEN 'f' THEN 'foreign table' WHEN 'c' THEN 'type' ELSE 'table' END END,
        c.oid, format('%I.%I', n.nspname, c.relname), c.relowner, coalesce(c.relacl, acldefault(CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", c.relowner)),
        'pg_class'::regclass,
        concat_ws(' ', pg_get_expr(c.relpartbound, c.oid), 'PARTITION BY ' || pg_get_partkeydef(c.oid), 'WITH ' || c.reloptions::text,
          CASE WHEN c.relpersistence <> 'p' THEN 'UNLOGGED' END, CASE WHEN c.relrowsecurity THEN 'ROW LEVEL SECURITY' END,
          CASE WHEN c.relforcerowsecurity THEN 'FORCED' END, 'USING ' || nullif(m.amname, 'heap'))
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_am m ON m.oid = c.relam
      WHERE c.relkind NOT IN ('i', 'I', 't') AND (n.oid IN (SELECT oid FROM spaces) OR n.nspname = 'public' AND c.relname = 'vatproof_migrations')
    UNION ALL SELECT 'function', p.oid, format('%I.%I(%s)', n.nspname, p.proname, pg_get_function_arguments(p.oid)), p.proowner,
        coalesce(p.proacl, acldefault('f', p.proowner)), 'pg_proc'::regclass,
        concat_ws(' ', nullif(p.prokind, 'f')::text, 'RETURNS', pg_get_function_result(p.oid), 'LANGUAGE', l.lanname,
          CASE p.provolatile WHEN 'i' THEN 'IMMUTABLE' WHEN 's' THEN 'STABLE' END, CASE WHEN p.proisstrict THEN 'STRICT' END,
          CASE p.proparallel WHEN 's' THEN 'PARALLEL SAFE' WHEN 'r' THEN 'PARALLEL RESTRICTED' END, CASE WHEN p.proleakproof THEN 'LEAKPROOF' END,
          CASE WHEN p.prosecdef THEN 'SECURITY DEFINER' END, 'SUPPORT ' || nullif(p.prosupport::oid, 0)::regproc, 'SET ' || array_to_string(p.proconfig, ' SET '),
          CASE WHEN p.prosqlbody IS NOT NULL THEN 'BEGIN ATOMIC' END)
      FROM pg_proc p JOIN spaces n ON n.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang
    UNION ALL SELECT 'event trigger', e.oid, format('%I', e.evtname), NULL, NULL, 'pg_event_trigger'::regclass,
        concat_ws(' ', e.evtevent, e.evttags::text, e.evtfoid::regproc, 'enabled', e.evtenabled::text)
      FROM pg_event_trigger e
    UNION ALL SELECT 'role', r.oid, format('%I', r.rolname), NULL, NULL, 'pg_authid'::regclass,
        concat_ws(' ', CASE WHEN a.rolsuper THEN 'SUPERUSER' END, CASE WHEN a.rolcreaterole THEN 'CREATEROLE' END, CASE WHEN a.rolcreatedb THEN 'CREATEDB' END,
          CASE WHEN a.rolbypassrls THEN 'BYPASSRLS' END, CASE WHEN a.rolreplication THEN 'REPLICATION' END,
          (SELECT string_agg('member of ' || g.name, ' ' ORDER BY g.name) FROM pg_auth_members m JOIN roles g ON g.oid = m.roleid WHERE m.member = r.oid))
      FROM own_roles r JOIN pg_roles a ON a.oid = r.oid
    UNION ALL SELECT 'role', 0, 'administrator', NULL, NULL, 'pg_authid'::regclass, CASE WHEN bool_and(a.rolsuper) THEN 'SUPERUSER' END FROM administrators a
    -- Operators, types and anything else in the schemas.
    UNION ALL SELECT 'object', d.objid, pg_describe_object(d.classid, d.objid, d.objsubid), NULL, NULL, d.classid::regclass, ''
      FROM pg_depend d WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid IN (SELECT oid FROM spaces)
      AND d.classid NOT IN ('pg_class'::regclass, 'pg_proc'::regclass, 'pg_publication_namespace'::regclass)
    UNION ALL SELECT 'object', d.oid, pg_describe_object('pg_default_acl'::regclass, d.oid, 0), NULL, NULL, 'pg_default_acl'::regclass, ''
      FROM pg_default_acl d WHERE d.defaclnamespace = 0 AND d.defaclrole IN (SELECT nspowner FROM spaces WHERE nspname = 'vatproof')
    -- Objects that every search path finds: in pg_catalog, unless they belong to an extension, and casts between the types of Postgres.
    UNION ALL SELECT 'object', s.oid, pg_describe_object(s.class, s.oid, 0), NULL, NULL, s.class, ''
      FROM (SELECT 'pg_proc'::regclass AS class, p.oid FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang WHERE p.pronamespace = 'pg_catalog'::regnamespace
          AND (p.oid >= 16384 OR l.lanname NOT IN ('internal', 'c', 'sql'))
        UNION ALL SELECT 'pg_operator', oid FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace AND oid >= 16384
        UNION ALL SELECT 'pg_class', oid FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND oid >= 16384
        UNION ALL SELECT 'pg_cast', oid FROM pg_cast WHERE oid >= 16384 AND castsource < 16384 AND casttarget < 16384) s
      WHERE NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = s.class AND d.objid = s.oid AND d.deptype = 'e')
    -- Settings that change what statements mean. Their values may be secrets. Limits of time and memory, and settings of the server's log, change nothing.
    UNION ALL SELECT 'setting', 0, concat_ws(' ', split_part(s.setting, '=', 1), 'of', CASE WHEN d.setrole <> 0 THEN 'the role ' || d.setrole::regrole END,
          CASE WHEN d.setdatabase <> 0 AND d.setrole <> 0 THEN 'in' END, CASE WHEN d.setdatabase <> 0 THEN 'the database' WHEN d.setrole = 0 THEN 'all roles' END),
        NULL, NULL, 'pg_db_role_setting'::regclass, ''
      FROM pg_db_role_setting d CROSS JOIN LATERAL unnest(d.setconfig) s(setting)
      WHERE (d.setdatabase = 0 OR d.setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database()))
        AND (d.setrole IN (SELECT 0 UNION ALL SELECT oid FROM own_roles UNION ALL SELECT oid FROM administrators)
          OR d.setrole IN (SELECT oid FROM pg_roles WHERE rolname IN (session_user, current_user)))
        AND s.setting !~ '^(log_\w+|(\w+_)?(timeout|mem))='),
  lines AS (
    SELECT o.kind, o.name, 0 AS part, 0 AS ord, concat_ws(' ', o.kind, nullif(o.name, '')) AS line FROM objects o
    UNION ALL SELECT o.kind, o.name, 1, 0, '  ' || nullif(o.details, '') FROM objects o
    UNION ALL SELECT o.kind, o.name, 1, 1, '  text ' || encode(sha256(convert_to(p.prosrc, 'UTF8')), 'hex') FROM objects o JOIN pg_proc p ON p.oid = o.oid
      WHERE o.kind = 'function'
    -- Postgres 15 qualifies the columns of a view of one table.
    UNION ALL SELECT o.kind, o.name, 1, 1, '  text ' || encode(sha256(convert_to(regexp_replace(pg_get_viewdef(o.oid), '\m(events|personal_documents)\.', '', 'g'), 'UTF8')), 'hex')
      FROM objects o WHERE o.kind IN ('view', 'materialized view')
    UNION ALL SELECT o.kind, o.name, 2, 0, '  comment: ' || obj_description(o.oid, o.class::text) FROM objects o
    UNION ALL SELECT o.kind, o.name, 3, 0, '  owner: ' || r.name FROM objects o JOIN roles r ON r.oid = o.owner
    UNION ALL SELECT o.kind, o.name, 4, 0, concat('  grant to ', r.name, ': ',
          string_agg(a.privilege_type || CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END, ', ' ORDER BY a.privilege_type))
      FROM objects o CROSS JOIN LATERAL aclexplode(o.acl) a JOIN roles r ON r.oid = a.grantee
      WHERE a.grantee <> o.owner AND NOT (NOT a.is_grantable AND a.grantee <> 0 AND a.grantee NOT IN (SELECT oid FROM own_roles)
        AND (o.kind = 'view' AND a.privilege_type = 'SELECT' AND o.name LIKE 'audit.%' OR o.kind = 'schema' AND a.privilege_type = 'USAGE' AND o.name = 'audit'))
      GROUP BY o.kind, o.name, r.name
    UNION ALL SELECT o.kind, o.name, 5, a.attnum, '  ' || concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod),
          CASE WHEN a.attcollation <> t.typcollation THEN 'COLLATE ' || a.attcollation::regcollation END, CASE WHEN a.attnotnull THEN 'NOT NULL' END,
          'DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), 'IDENTITY ' || nullif(a.attidentity::text, ''),
          'GENERATED ' || nullif(a.attgenerated::text, ''), CASE WHEN a.attstorage <> t.typstorage THEN 'STORAGE ' || a.attstorage::text END,
          'REVOKED OR GRANTED ' || a.attacl::text, '-- ' || col_description(a.attrelid, a.attnum))
      FROM objects o JOIN pg_attribute a ON a.attrelid = o.oid AND a.attnum > 0 AND NOT a.attisdropped JOIN pg_type t ON t.oid = a.atttypid
      LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum WHERE o.class = 'pg_class'::regclass AND o.kind <> 'partition'
    -- Omits NOT NULL, which is a constraint only since Postgres 18.
    UNION ALL SELECT o.kind, o.name, 6, 0, concat('  constraint ', c.conname, ' ', pg_get_constraintdef(c.oid))
      FROM objects o JOIN pg_constraint c ON c.conrelid = o.oid WHERE o.class = 'pg_class'::regclass AND c.contype <> 'n'
    UNION ALL SELECT o.kind, o.name, 7, 0, concat('  ', pg_get_indexdef(i.indexrelid), CASE WHEN NOT i.indisvalid THEN ' INVALID' END)
      FROM objects o JOIN pg_index i ON i.indrelid = o.oid WHERE o.class = 'pg_class'::regclass
      AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid AND c.conrelid = o.oid)
    -- Internal triggers enforce foreign keys. They are shown only if they are off.
    UNION ALL SELECT o.kind, o.name, 8, 0, concat('  ', pg_get_triggerdef(t.oid), ' enabled ', t.tgenabled)
      FROM objects o JOIN pg_trigger t ON t.tgrelid = o.oid WHERE o.class = 'pg_class'::regclass AND (NOT t.tgisinternal OR t.tgenabled NOT IN ('O', 'A'))
    UNION ALL SELECT o.kind, o.name, 9, 0, concat('  ', pg_get_ruledef(r.oid), ' enabled ', r.ev_enabled)
      FROM objects o JOIN pg_rewrite r ON r.ev_class = o.oid WHERE o.class = 'pg_class'::regclass AND (r.rulename <> '_RETURN' OR r.ev_enabled <> 'O')
    UNION ALL SELECT o.kind, o.name, 10, 0, concat_ws(' ', '  policy', p.polname, p.polcmd, CASE WHEN p.polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,
          'USING', pg_get_expr(p.polqual, p.polrelid), 'CHECK', pg_get_expr(p.polwithcheck, p.polrelid))
      FROM objects o JOIN pg_policy p ON p.polrelid = o.oid WHERE o.class = 'pg_class'::regclass
    -- Rows of an inheriting table, or of a partition in another schema, are rows of the table.
    UNION ALL SELECT o.kind, o.name, 11, 0, '  inherited by ' || i.inhrelid::regclass
      FROM objects o JOIN pg_inherits i ON i.inhparent = o.oid JOIN pg_class c ON c.oid = i.inhrelid
      WHERE o.class = 'pg_class'::regclass AND (NOT c.relispartition OR c.relnamespace NOT IN (SELECT oid FROM spaces))
    UNION ALL SELECT o.kind, o.name, 12, 0, '  inherits from ' || i.inhparent::regclass
      FROM objects o JOIN pg_inherits i ON i.inhrelid = o.oid WHERE o.class = 'pg_class'::regclass)
-- A line break within a text, such as a comment, could imitate other objects.
SELECT CASE WHEN part = 0 THEN chr(10) ELSE '' END || translate(line, E'\n\r', '  ') AS line FROM lines WHERE line IS NOT NULL
ORDER BY array_position(ARRAY['migrations', 'role', 'schema', 'table', 'partition', 'view', 'function', 'event trigger'], kind) NULLS LAST, kind COLLATE "C", name COLLATE "C", part, ord, line COLLATE "C"
