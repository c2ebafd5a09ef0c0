-- Who may do what. The service's role may call the two functions that write the log and nothing else there.

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'vatproof_service') THEN
    GRANT USAGE ON SCHEMA vatproof TO vatproof_service;
    GRANT SELECT ON ALL TABLES IN SCHEMA vatproof TO vatproof_service;
    GRANT INSERT, UPDATE ON vatproof.accounts, vatproof.api_keys, vatproof.contacts TO vatproof_service;
    GRANT DELETE ON vatproof.contacts, vatproof.rate_windows, vatproof.rate_places TO vatproof_service;
  END IF;
END $$;

REVOKE ALL ON FUNCTION vatproof.append FROM PUBLIC;
REVOKE ALL ON FUNCTION vatproof.ensure_partitions FROM PUBLIC;
REVOKE ALL ON FUNCTION vatproof.take FROM PUBLIC;
REVOKE ALL ON FUNCTION vatproof.take_place FROM PUBLIC;

DO $$
DECLARE item record;
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'vatproof_service') THEN
    GRANT EXECUTE ON FUNCTION vatproof.append, vatproof.ensure_partitions, vatproof.take, vatproof.take_place TO vatproof_service;
  END IF;
  -- Everything belongs to a role that nobody can log in as.
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'vatproof_owner') AND pg_has_role(current_user, 'vatproof_owner', 'MEMBER') THEN
    EXECUTE format('GRANT CREATE ON DATABASE %I TO vatproof_owner', current_database());
    ALTER SCHEMA vatproof OWNER TO vatproof_owner;
    FOR item IN SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = 'vatproof' AND c.relkind IN ('r', 'p') AND c.relname <> 'migrations' LOOP
      EXECUTE format('ALTER TABLE vatproof.%I OWNER TO vatproof_owner', item.relname);
    END LOOP;
    FOR item IN SELECT p.oid::regprocedure AS signature FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'vatproof' LOOP
      EXECUTE format('ALTER FUNCTION %s OWNER TO vatproof_owner', item.signature);
    END LOOP;
  END IF;
EXCEPTION WHEN insufficient_privilege THEN
  RAISE NOTICE 'vatproof_owner cannot own the schema here: %', SQLERRM;
END $$;

-- Event triggers refuse what a row trigger cannot see. Only a superuser may create them, so on a managed database they may be missing.
-- They live in a schema of their own: DROP SCHEMA vatproof CASCADE would remove them before they could object.
CREATE SCHEMA IF NOT EXISTS vatproof_guard;
CREATE FUNCTION vatproof_guard.refuse_drop() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE refused text;
BEGIN
  SELECT object_identity INTO refused FROM pg_event_trigger_dropped_objects()
    WHERE object_identity ~ '^vatproof\.events|^append_only\S* on vatproof\.events|^vatproof\.refuse_|^vatproof_guard' LIMIT 1;
  IF refused IS NOT NULL THEN
    RAISE EXCEPTION 'vatproof is append-only: dropping % is refused', refused USING ERRCODE = 'insufficient_privilege';
  END IF;
END $$;

CREATE FUNCTION vatproof_guard.refuse_loosening() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE loose text;
BEGIN
  -- Everything below knows the tables by their names, so these stay.
  SELECT coalesce(min(c.oid::regclass::text), 'vatproof.events') INTO loose
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = to_regclass('vatproof.events')
    AND (c.relname !~ '^events_p\d+$' OR c.relnamespace <> to_regnamespace('vatproof')) HAVING count(*) > 0 OR to_regclass('vatproof.events') IS NULL;
  IF loose IS NOT NULL THEN
    RAISE EXCEPTION 'vatproof is append-only: renaming or moving % is refused', loose USING ERRCODE = 'insufficient_privilege';
  END IF;
  SELECT c.relname INTO loose FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'vatproof' AND c.relkind = 'r' AND c.relname ~ '^events_p\d+$' AND NOT c.relispartition LIMIT 1;
  IF loose IS NOT NULL THEN
    RAISE EXCEPTION 'vatproof is append-only: detaching % is refused', loose USING ERRCODE = 'insufficient_privilege';
  END IF;
  SELECT c.relname INTO loose FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'vatproof' AND c.relname ~ '^events(_p\d+)?$' AND 2 <> (SELECT count(*) FROM pg_trigger t
      WHERE t.tgrelid = c.oid AND t.tgname IN ('append_only', 'append_only_truncate') AND t.tgenabled = 'A') LIMIT 1;
  IF loose IS NULL THEN
    SELECT c.relname INTO loose FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = 'vatproof' AND t.tgname LIKE 'append_only%' AND t.tgenabled <> 'A' LIMIT 1;
  END IF;
  IF loose IS NOT NULL THEN
    RAISE EXCEPTION 'vatproof is append-only: disabling a trigger of % is refused', loose USING ERRCODE = 'insufficient_privilege';
  END IF;
END $$;

-- ALTER COLUMN ... TYPE ... USING writes every row anew, and no row trigger sees it.
CREATE FUNCTION vatproof_guard.refuse_rewriting() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE rewritten CONSTANT regclass := pg_event_trigger_table_rewrite_oid();
BEGIN
  IF EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = rewritten AND t.tgname = 'append_only'
    AND rewritten IN (SELECT oid FROM pg_class WHERE relnamespace = 'vatproof'::regnamespace)) THEN
    RAISE EXCEPTION 'vatproof is append-only: rewriting % is refused', rewritten USING ERRCODE = 'insufficient_privilege';
  END IF;
END $$;

DO $$
BEGIN
  CREATE EVENT TRIGGER vatproof_refuse_drop ON sql_drop EXECUTE FUNCTION vatproof_guard.refuse_drop();
  ALTER EVENT TRIGGER vatproof_refuse_drop ENABLE ALWAYS;
  CREATE EVENT TRIGGER vatproof_refuse_loosening ON ddl_command_end WHEN TAG IN ('ALTER TABLE', 'ALTER TRIGGER', 'ALTER SCHEMA')
    EXECUTE FUNCTION vatproof_guard.refuse_loosening();
  ALTER EVENT TRIGGER vatproof_refuse_loosening ENABLE ALWAYS;
  CREATE EVENT TRIGGER vatproof_refuse_rewriting ON table_rewrite EXECUTE FUNCTION vatproof_guard.refuse_rewriting();
  ALTER EVENT TRIGGER vatproof_refuse_rewriting ENABLE ALWAYS;
EXCEPTION WHEN insufficient_privilege THEN
  RAISE NOTICE 'event triggers need a superuser: %', SQLERRM;
END $$;
