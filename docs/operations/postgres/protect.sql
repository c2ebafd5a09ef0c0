-- Gives a database whose migrations ran without an administrator's rights the protections that they could not make there: the roles, who owns
-- what and who may do what, and the event triggers. Run it in Vatproof's database, beside a running service or without one:
--
--   psql --set=ON_ERROR_STOP=1 --single-transaction --dbname=<database> --file=protect.sql
--
-- as a superuser, or on a managed server as the role that may make roles, after GRANT <login role> TO <that role>. Then restart the service.
-- The role that it logs in with may append afterwards, and no longer migrate: run `vatproof migrate` as the administrator from then on.
-- It may be run again at any time.

DO $$
DECLARE wanted text;
BEGIN
  FOREACH wanted IN ARRAY ARRAY['vatproof_owner', 'vatproof_service', 'vatproof_auditor'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN EXECUTE format('CREATE ROLE %I NOLOGIN', wanted); END IF;
  END LOOP;
  -- Who makes a role is a member of it, but since Postgres 16 without the right to act as it. A superuser needs no right.
  IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN GRANT vatproof_owner TO CURRENT_USER; END IF;
END $$;

-- What the service logs in with is whoever has owned the tables so far.
DO $$
DECLARE
  login CONSTANT name := (SELECT rolname FROM pg_roles WHERE oid = (SELECT relowner FROM pg_class WHERE oid = 'vatproof.logs'::regclass));
  item text;
BEGIN
  IF login NOT IN ('vatproof_owner', current_user) THEN
    EXECUTE format('GRANT vatproof_service TO %I', login);
    IF pg_has_role(login, 'vatproof_owner', 'MEMBER') THEN EXECUTE format('REVOKE vatproof_owner FROM %I', login); END IF;
    -- Whoever owns the database may drop it, and the table that knows which migrations were applied.
    BEGIN
      EXECUTE format('ALTER DATABASE %I OWNER TO CURRENT_USER', current_database());
    EXCEPTION WHEN insufficient_privilege THEN
      RAISE NOTICE 'The database still belongs to %, who may drop it: % may not change that (%)', login, current_user, SQLERRM;
    END;
  END IF;

  EXECUTE format('GRANT CREATE ON DATABASE %I TO vatproof_owner', current_database());
  ALTER SCHEMA vatproof OWNER TO vatproof_owner;
  ALTER SCHEMA audit OWNER TO vatproof_owner;
  FOR item IN SELECT oid::regclass FROM pg_class
    WHERE relnamespace IN ('vatproof'::regnamespace, 'audit'::regnamespace) AND relkind IN ('r', 'p', 'v') LOOP
    EXECUTE format('ALTER TABLE %s OWNER TO vatproof_owner', item);
  END LOOP;
  FOR item IN SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'vatproof'::regnamespace LOOP
    EXECUTE format('ALTER FUNCTION %s OWNER TO vatproof_owner', item);
  END LOOP;

  -- Whoever owned what watches could change it.
  ALTER SCHEMA vatproof_guard OWNER TO CURRENT_USER;
  FOR item IN SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'vatproof_guard'::regnamespace LOOP
    EXECUTE format('ALTER FUNCTION %s OWNER TO CURRENT_USER', item);
  END LOOP;
  ALTER TABLE vatproof_migrations OWNER TO CURRENT_USER;
END $$;

GRANT USAGE ON SCHEMA vatproof TO vatproof_service;
GRANT SELECT ON vatproof_migrations TO vatproof_service;
GRANT SELECT ON vatproof.accounts, vatproof.api_key_labels, vatproof.api_keys, vatproof.auditors, vatproof.checkpoints, vatproof.contacts,
  vatproof.event_places, vatproof.hash_key, vatproof.latest, vatproof.listed, vatproof.logs, vatproof.meters, vatproof.notaries,
  vatproof.outbox, vatproof.projections, vatproof.rate_places, vatproof.rate_windows, vatproof.streams, vatproof.tiles,
  vatproof.verification_tokens TO vatproof_service;
DO $$
DECLARE item text;
BEGIN
  FOR item IN SELECT oid::regclass FROM pg_class WHERE relnamespace = 'vatproof'::regnamespace AND relname ~ '^events(_p[012])?$' LOOP
    EXECUTE format('GRANT SELECT ON %s TO vatproof_service', item);
  END LOOP;
END $$;
GRANT INSERT ON vatproof.accounts, vatproof.api_key_labels, vatproof.api_keys, vatproof.auditors, vatproof.contacts, vatproof.event_places,
  vatproof.outbox, vatproof.projections, vatproof.verification_tokens TO vatproof_service;
GRANT UPDATE ON vatproof.accounts, vatproof.api_keys, vatproof.auditors, vatproof.contacts, vatproof.event_places, vatproof.outbox,
  vatproof.projections TO vatproof_service;
GRANT DELETE ON vatproof.contacts, vatproof.outbox, vatproof.rate_places, vatproof.rate_windows, vatproof.verification_tokens
  TO vatproof_service;
GRANT EXECUTE ON FUNCTION vatproof.append, vatproof.append_all, vatproof.claim_mail, vatproof.claim_notary, vatproof.ensure_partitions,
  vatproof.notarize, vatproof.places_of_vat_id, vatproof.position_at, vatproof.release_notary, vatproof.sweep_limits, vatproof.take,
  vatproof.take_place, vatproof.take_places, vatproof.version_at TO vatproof_service;
GRANT USAGE ON SCHEMA audit TO vatproof_auditor;
GRANT SELECT ON audit.events, audit.key_revocations, audit.receipts, audit.verifications TO vatproof_auditor;

DO $$
DECLARE
  missing record;
BEGIN
  FOR missing IN SELECT * FROM (VALUES
      ('vatproof_refuse_drop', 'sql_drop', 'refuse_drop'),
      ('vatproof_refuse_loosening', $tags$ddl_command_end WHEN TAG IN ('ALTER TABLE', 'ALTER TRIGGER', 'ALTER SCHEMA')$tags$, 'refuse_loosening'),
      ('vatproof_refuse_rewriting', 'table_rewrite', 'refuse_rewriting')) AS wanted(name, event, function)
    WHERE NOT EXISTS (SELECT FROM pg_event_trigger WHERE evtname = wanted.name) LOOP
    EXECUTE format('CREATE EVENT TRIGGER %I ON %s EXECUTE FUNCTION vatproof_guard.%I()', missing.name, missing.event, missing.function);
    EXECUTE format('ALTER EVENT TRIGGER %I ENABLE ALWAYS', missing.name);
  END LOOP;
EXCEPTION WHEN insufficient_privilege THEN
  RAISE NOTICE 'The event triggers need a superuser: without them DROP, DETACH and DISABLE TRIGGER are not refused to the tables'' owner (%)', SQLERRM;
END $$;
