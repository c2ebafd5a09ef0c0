/**
 * The schema as text, read from the catalog. The text is the same on each supported version of Postgres, unlike the output of pg_dump
 * and the definitions of views. Bodies of functions and views are omitted: they are in migrations/.
 */
import { Effect, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"

/** Returns one paragraph per object. The current role, which has migrated, is shown as "administrator". */
export const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const find = SqlSchema.findAll({
    Request: Schema.Void,
    Result: Schema.Struct({ line: Schema.String }),
    execute: () => sql`WITH
      roles AS (SELECT oid, CASE WHEN rolname = current_user THEN 'administrator' ELSE rolname::text END AS name FROM pg_roles
        UNION ALL SELECT 0, 'PUBLIC'),
      spaces AS (SELECT oid FROM pg_namespace WHERE nspname IN ('vatproof', 'vatproof_guard', 'audit')),
      objects AS (
        SELECT 'schema' AS kind, n.oid, n.oid::regnamespace::text AS name, n.nspowner AS owner, coalesce(n.nspacl, acldefault('n', n.nspowner)) AS acl,
            'pg_namespace'::regclass AS class, '' AS details
          FROM pg_namespace n WHERE n.oid IN (SELECT oid FROM spaces)
        UNION ALL SELECT CASE WHEN relispartition THEN 'partition' WHEN relkind = 'v' THEN 'view' ELSE 'table' END, c.oid, c.oid::regclass::text, c.relowner,
            coalesce(c.relacl, acldefault('r', c.relowner)), 'pg_class'::regclass,
            concat_ws(' ', pg_get_expr(c.relpartbound, c.oid), 'PARTITION BY ' || pg_get_partkeydef(c.oid),
              'WITH ' || c.reloptions::text, CASE WHEN c.relpersistence <> 'p' THEN 'UNLOGGED' END)
          FROM pg_class c WHERE relkind IN ('r', 'p', 'v') AND (relnamespace IN (SELECT oid FROM spaces) OR relname = 'vatproof_migrations')
        UNION ALL SELECT 'function', p.oid, format('%s(%s)', p.oid::regproc, pg_get_function_arguments(p.oid)), p.proowner, coalesce(p.proacl, acldefault('f', p.proowner)),
            'pg_proc'::regclass,
            concat_ws(' ', 'RETURNS', pg_get_function_result(p.oid), 'LANGUAGE', l.lanname,
              CASE p.provolatile WHEN 'i' THEN 'IMMUTABLE' WHEN 's' THEN 'STABLE' END, CASE WHEN p.proisstrict THEN 'STRICT' END,
              CASE p.proparallel WHEN 's' THEN 'PARALLEL SAFE' WHEN 'r' THEN 'PARALLEL RESTRICTED' END,
              CASE WHEN p.prosecdef THEN 'SECURITY DEFINER' END, 'SET ' || array_to_string(p.proconfig, ' SET '))
          FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang WHERE p.pronamespace IN (SELECT oid FROM spaces)
        UNION ALL SELECT 'event trigger', e.oid, e.evtname::text, e.evtowner, NULL, 'pg_event_trigger'::regclass,
            concat_ws(' ', e.evtevent, e.evttags::text, e.evtfoid::regproc, 'enabled', e.evtenabled::text)
          FROM pg_event_trigger e WHERE e.evtname LIKE 'vatproof%'),
      lines AS (
        SELECT o.kind, o.name, 0 AS part, 0 AS ord, concat_ws(' ', o.kind, o.name, nullif(o.details, '')) AS line FROM objects o
        UNION ALL SELECT o.kind, o.name, 1, 0, '  comment: ' || obj_description(o.oid, o.class::text) FROM objects o
        UNION ALL SELECT o.kind, o.name, 2, 0, '  owner: ' || r.name FROM objects o JOIN roles r ON r.oid = o.owner
        UNION ALL SELECT o.kind, o.name, 3, 0, concat('  grant to ', r.name, ': ', string_agg(a.privilege_type, ', ' ORDER BY a.privilege_type))
          FROM objects o CROSS JOIN LATERAL aclexplode(o.acl) a JOIN roles r ON r.oid = a.grantee
          WHERE a.grantee <> o.owner GROUP BY o.kind, o.name, r.name
        UNION ALL SELECT o.kind, o.name, 4, a.attnum, '  ' || concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod),
              CASE WHEN a.attcollation <> t.typcollation THEN 'COLLATE ' || a.attcollation::regcollation END, CASE WHEN a.attnotnull THEN 'NOT NULL' END,
              'DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), 'IDENTITY ' || nullif(a.attidentity::text, ''),
              'GENERATED ' || nullif(a.attgenerated::text, ''), CASE WHEN a.attstorage <> t.typstorage THEN 'STORAGE ' || a.attstorage::text END,
              'REVOKED OR GRANTED ' || a.attacl::text, '-- ' || col_description(a.attrelid, a.attnum))
          FROM objects o JOIN pg_attribute a ON a.attrelid = o.oid AND a.attnum > 0 AND NOT a.attisdropped JOIN pg_type t ON t.oid = a.atttypid
          LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum WHERE o.kind IN ('table', 'view')
        -- Omits NOT NULL, which is a constraint only since Postgres 18.
        UNION ALL SELECT o.kind, o.name, 5, 0, concat('  constraint ', c.conname, ' ', pg_get_constraintdef(c.oid))
          FROM objects o JOIN pg_constraint c ON c.conrelid = o.oid WHERE c.contype <> 'n'
        UNION ALL SELECT o.kind, o.name, 6, 0, '  ' || pg_get_indexdef(i.indexrelid) FROM objects o JOIN pg_index i ON i.indrelid = o.oid
          WHERE NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid AND c.conrelid = o.oid)
        UNION ALL SELECT o.kind, o.name, 7, 0, concat('  ', pg_get_triggerdef(t.oid), ' enabled ', t.tgenabled)
          FROM objects o JOIN pg_trigger t ON t.tgrelid = o.oid WHERE NOT t.tgisinternal
        UNION ALL SELECT 'table', 'vatproof.logs', 8, 0, '  row: ' || to_jsonb(l)::text FROM vatproof.logs l
        UNION ALL SELECT 'table', 'vatproof.notaries', 8, 0, '  row: ' || to_jsonb(n)::text FROM vatproof.notaries n
        UNION ALL SELECT 'table', 'vatproof.hash_key', 8, 0, '  rows: ' || count(*) FROM vatproof.hash_key)
      SELECT CASE WHEN part = 0 THEN chr(10) ELSE '' END || line AS line FROM lines WHERE line IS NOT NULL
      ORDER BY array_position(ARRAY['schema', 'table', 'partition', 'view', 'function', 'event trigger'], kind), name COLLATE "C", part, ord, line COLLATE "C"`
  })
  // Without a search path every name is qualified.
  const lines = yield* sql.withTransaction(Effect.andThen(sql`SELECT set_config('search_path', '', true)`, find(undefined)))
  return lines
    .map(({ line }) => `${line}\n`)
    .join("")
    .trimStart()
})
