-- Gives a database whose migrations ran without an administrator's rights the protections that they could not create there: roles, owners,
-- rights and event triggers. Run it in Vatproof's database, beside a running service or without one:
--
--   psql --set=ON_ERROR_STOP=1 --single-transaction --dbname=<database> --file=protect.sql
--
-- as a superuser, or on a managed server as the role that can create roles, after GRANT <login role> TO <that role>. Then restart the service.
-- Afterwards its login role can append and no longer migrate: run `vatproof migrate` as the administrator from then on.
-- It may be run again at any time. It includes migrations/protection.sql by a relative path.

SET LOCAL search_path = pg_catalog;

DO $$
DECLARE wanted text;
BEGIN
  FOREACH wanted IN ARRAY ARRAY['vatproof_owner', 'vatproof_service', 'vatproof_auditor'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN EXECUTE format('CREATE ROLE %I NOLOGIN', wanted); END IF;
  END LOOP;
  -- The creator of a role is a member of it, but since Postgres 16 without the right to act as it. A superuser needs no right.
  IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN GRANT vatproof_owner TO CURRENT_USER; END IF;
END $$;

-- The login role of the service is the present owner of the tables.
DO $$
DECLARE
  login CONSTANT name := (SELECT rolname FROM pg_roles WHERE oid = (SELECT relowner FROM pg_class WHERE oid = 'vatproof.logs'::regclass));
  item text;
BEGIN
  IF login NOT IN ('vatproof_owner', current_user) THEN
    EXECUTE format('GRANT vatproof_service TO %I', login);
    IF pg_has_role(login, 'vatproof_owner', 'MEMBER') THEN EXECUTE format('REVOKE vatproof_owner FROM %I', login); END IF;
    -- The owner of the database could drop it, and the table of the applied migrations.
    BEGIN
      EXECUTE format('ALTER DATABASE %I OWNER TO CURRENT_USER', current_database());
    EXCEPTION WHEN insufficient_privilege THEN
      RAISE NOTICE '% still owns the database and can drop it: % has no right to change the owner (%)', login, current_user, SQLERRM;
    END;
  END IF;

  -- The login role must not own the functions that protect the log.
  ALTER SCHEMA vatproof_guard OWNER TO CURRENT_USER;
  FOR item IN SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'vatproof_guard'::regnamespace LOOP
    EXECUTE format('ALTER FUNCTION %s OWNER TO CURRENT_USER', item);
  END LOOP;
  ALTER TABLE public.vatproof_migrations OWNER TO CURRENT_USER;
END $$;

-- Owners, rights and event triggers, as each migration leaves them.
\ir ../../../migrations/protection.sql

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_class WHERE oid = 'vatproof.logs'::regclass AND relowner <> to_regrole('vatproof_owner')) THEN
    RAISE EXCEPTION 'vatproof_owner does not own the tables: run this as a superuser, or after GRANT <login role> TO %', current_user;
  END IF;
END $$;
