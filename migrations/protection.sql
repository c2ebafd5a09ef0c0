-- Triggers, partitions, owners and rights. This file runs last whenever another file was applied, so that new objects are protected and have
-- the right owner. Running it again changes nothing.

-- Creates the missing triggers, and enables those that are off. The partitions of vatproof.events inherit the row trigger of this table.
DO $$
DECLARE
  wanted record;
  disabled record;
BEGIN
  FOR wanted IN SELECT * FROM (VALUES
      ('events', 'append_only', 'BEFORE UPDATE OR DELETE', 'ROW', 'refuse_change', true),
      ('events', 'append_only_truncate', 'BEFORE TRUNCATE', 'STATEMENT', 'refuse_change', true),
      ('tiles', 'append_only', 'BEFORE UPDATE OR DELETE', 'ROW', 'refuse_rewrite', true),
      ('tiles', 'append_only_truncate', 'BEFORE TRUNCATE', 'STATEMENT', 'refuse_rewrite', true),
      ('checkpoints', 'append_only', 'BEFORE UPDATE OR DELETE', 'ROW', 'refuse_rewrite', true),
      ('checkpoints', 'append_only_truncate', 'BEFORE TRUNCATE', 'STATEMENT', 'refuse_rewrite', true),
      ('personal_documents', 'append_only', 'BEFORE UPDATE OR DELETE', 'ROW', 'refuse_document_change', true),
      ('personal_documents', 'append_only_truncate', 'BEFORE TRUNCATE', 'STATEMENT', 'refuse_document_change', true),
      ('accounts', 'identity_epoch', 'AFTER UPDATE', 'ROW WHEN (OLD.plan <> NEW.plan OR OLD.per_month IS DISTINCT FROM NEW.per_month)', 'move_identity_epoch', false),
      ('accounts', 'identity_epoch_deleted', 'AFTER DELETE', 'STATEMENT', 'move_identity_epoch', false),
      ('api_keys', 'identity_epoch', 'AFTER UPDATE', 'ROW WHEN (OLD.* IS DISTINCT FROM NEW.*)', 'move_identity_epoch', false),
      ('api_keys', 'identity_epoch_deleted', 'AFTER DELETE', 'STATEMENT', 'move_identity_epoch', false)
    ) AS t(on_table, name, event, level, function, always)
    WHERE NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = format('vatproof.%I', t.on_table)::regclass AND tgname = t.name) LOOP
    EXECUTE format('CREATE TRIGGER %I %s ON vatproof.%I FOR EACH %s EXECUTE FUNCTION vatproof.%I()',
      wanted.name, wanted.event, wanted.on_table, wanted.level, wanted.function);
    IF wanted.always THEN EXECUTE format('ALTER TABLE vatproof.%I ENABLE ALWAYS TRIGGER %I', wanted.on_table, wanted.name); END IF;
  END LOOP;
  FOR disabled IN SELECT t.tgrelid, t.tgname, t.tgname LIKE 'append_only%' AS always FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE c.relnamespace = 'vatproof'::regnamespace AND NOT t.tgisinternal
    AND t.tgenabled <> CASE WHEN t.tgname LIKE 'append_only%' THEN 'A' ELSE 'O' END::"char" LOOP
    EXECUTE format('ALTER TABLE %s ENABLE %s TRIGGER %I', disabled.tgrelid::regclass, CASE WHEN disabled.always THEN 'ALWAYS' END, disabled.tgname);
  END LOOP;
END $$;

SELECT vatproof.ensure_partitions(0::smallint);

-- Makes vatproof_owner, a role without login, the owner of everything. If this role does not exist, or the migrating role is not a member of it,
-- the migrating role remains the owner.
DO $$
DECLARE
  new_owner CONSTANT oid := to_regrole('vatproof_owner');
  item text;
BEGIN
  IF new_owner IS NULL OR NOT pg_has_role(current_user, new_owner, 'MEMBER') THEN RETURN; END IF;
  IF NOT has_database_privilege(new_owner, current_database(), 'CREATE') THEN
    EXECUTE format('GRANT CREATE ON DATABASE %I TO vatproof_owner', current_database());
  END IF;
  FOR item IN
    SELECT 'SCHEMA ' || oid::regnamespace FROM pg_namespace WHERE nspname IN ('vatproof', 'audit') AND nspowner <> new_owner
    UNION ALL SELECT 'TABLE ' || oid::regclass FROM pg_class
      WHERE relnamespace IN ('vatproof'::regnamespace, 'audit'::regnamespace) AND relkind IN ('r', 'p', 'v') AND relowner <> new_owner
    UNION ALL SELECT 'FUNCTION ' || oid::regprocedure FROM pg_proc WHERE pronamespace = 'vatproof'::regnamespace AND proowner <> new_owner
  LOOP EXECUTE format('ALTER %s OWNER TO vatproof_owner', item); END LOOP;
EXCEPTION WHEN insufficient_privilege THEN
  RAISE NOTICE 'The role vatproof_owner could not become the owner of the schema, so % remains the owner: %', current_user, SQLERRM;
END $$;

-- PUBLIC may execute only json_of, which the views for auditors call: a user of a view needs the right to execute its functions.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA vatproof FROM PUBLIC;
GRANT EXECUTE ON FUNCTION vatproof.json_of TO PUBLIC;

-- Grants the rights of the service's role and of the auditors' role.
DO $$
BEGIN
  IF to_regrole('vatproof_service') IS NOT NULL THEN
    GRANT SELECT ON public.vatproof_migrations TO vatproof_service;
    GRANT USAGE ON SCHEMA vatproof TO vatproof_service;
    GRANT SELECT ON ALL TABLES IN SCHEMA vatproof TO vatproof_service;
    GRANT INSERT ON vatproof.api_key_labels, vatproof.contacts, vatproof.event_index, vatproof.outbox, vatproof.projections,
      vatproof.mail_tokens, vatproof.source_hours, vatproof.uploads TO vatproof_service;
    GRANT UPDATE ON vatproof.contacts, vatproof.event_index, vatproof.outbox, vatproof.projections, vatproof.scrubs, vatproof.source_hours, vatproof.uploads TO vatproof_service;
    GRANT DELETE ON vatproof.contacts, vatproof.outbox, vatproof.rate_slots, vatproof.rate_windows, vatproof.mail_tokens, vatproof.uploads
      TO vatproof_service;
    GRANT EXECUTE ON FUNCTION vatproof.accounts_rows, vatproof.api_keys_rows, vatproof.append, vatproof.auditors_rows, vatproof.batches_rows, vatproof.event_index_rows, vatproof.latest_rows, vatproof.listed_rows,
      vatproof.meters_rows, vatproof.source_hours_rows, vatproof.streams_rows, vatproof.tasks_rows, vatproof.claim_mail, vatproof.claim_notary, vatproof.claim_tasks, vatproof.count_calls,
      vatproof.defer_tasks, vatproof.find_tasks, vatproof.item_id, vatproof.keep_tasks, vatproof.next_attempt,
      vatproof.ensure_partitions, vatproof.find_callers, vatproof.lock_account, vatproof.newest_answers, vatproof.notarize, vatproof.positions_of_vat_id, vatproof.position_at, vatproof.release_items, vatproof.release_notary, vatproof.resume_tasks,
      vatproof.sweep_limits, vatproof.acquire_leases, vatproof.acquire_slots, vatproof.spend_budget, vatproof.version_at TO vatproof_service;
  END IF;
  IF to_regrole('vatproof_auditor') IS NOT NULL THEN
    GRANT USAGE ON SCHEMA audit TO vatproof_auditor;
    GRANT SELECT ON ALL TABLES IN SCHEMA audit TO vatproof_auditor;
  END IF;
END $$;

-- Creates the missing event triggers and enables those that are off, which only a superuser can do.
DO $$
DECLARE missing record;
BEGIN
  FOR missing IN SELECT * FROM (VALUES
      ('vatproof_refuse_drop', 'sql_drop', 'refuse_drop'),
      ('vatproof_refuse_loosening', $tags$ddl_command_end WHEN TAG IN ('ALTER TABLE', 'ALTER TRIGGER', 'ALTER SCHEMA')$tags$, 'refuse_loosening'),
      ('vatproof_refuse_rewriting', 'table_rewrite', 'refuse_rewriting')) AS wanted(name, event, function)
    WHERE NOT EXISTS (SELECT FROM pg_event_trigger WHERE evtname = wanted.name) LOOP
    EXECUTE format('CREATE EVENT TRIGGER %I ON %s EXECUTE FUNCTION vatproof_guard.%I()', missing.name, missing.event, missing.function);
  END LOOP;
  FOR missing IN SELECT evtname AS name FROM pg_event_trigger WHERE evtname LIKE 'vatproof_refuse_%' AND evtenabled <> 'A' LOOP
    EXECUTE format('ALTER EVENT TRIGGER %I ENABLE ALWAYS', missing.name);
  END LOOP;
EXCEPTION WHEN insufficient_privilege THEN
  RAISE NOTICE 'The event triggers were not created, because only a superuser can create them (%). Without them, the owner of the tables can drop and detach tables and disable triggers', SQLERRM;
END $$;
