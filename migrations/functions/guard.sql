-- Functions of the event triggers, which reject changes that row triggers do not see. The functions have a schema of their own. In the schema
-- vatproof, the command DROP SCHEMA vatproof CASCADE would drop them before they could reject it.

-- Rejects dropping a protected table, trigger or function.
CREATE OR REPLACE FUNCTION vatproof_guard.refuse_drop() RETURNS event_trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE refused text;
BEGIN
  SELECT object_identity INTO refused FROM pg_event_trigger_dropped_objects()
    WHERE object_identity ~ '^vatproof\.(events|tiles|checkpoints|personal_documents)|^append_only\S* on vatproof\.|^vatproof\.refuse_|^vatproof_guard' LIMIT 1;
  IF refused IS NOT NULL THEN
    RAISE EXCEPTION 'vatproof is append-only: dropping % is refused', refused USING ERRCODE = 'insufficient_privilege';
  END IF;
END $$;

-- Rejects renaming and detaching partitions, and disabling triggers.
CREATE OR REPLACE FUNCTION vatproof_guard.refuse_loosening() RETURNS event_trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE loose text;
BEGIN
  -- The triggers identify tables by name, so tables must keep their names.
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

-- Rejects rewriting a protected table: ALTER COLUMN … TYPE … USING changes every row without firing row triggers.
CREATE OR REPLACE FUNCTION vatproof_guard.refuse_rewriting() RETURNS event_trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE rewritten CONSTANT regclass := pg_event_trigger_table_rewrite_oid();
BEGIN
  IF EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = rewritten AND t.tgname = 'append_only'
    AND rewritten IN (SELECT oid FROM pg_class WHERE relnamespace = 'vatproof'::regnamespace)) THEN
    RAISE EXCEPTION 'vatproof is append-only: rewriting % is refused', rewritten USING ERRCODE = 'insufficient_privilege';
  END IF;
END $$;
