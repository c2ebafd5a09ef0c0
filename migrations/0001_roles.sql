-- The schemas, their owner roles and the roles that use them. protection.sql sets ownership and rights.

CREATE SCHEMA IF NOT EXISTS vatproof;
CREATE SCHEMA IF NOT EXISTS vatproof_guard;
CREATE SCHEMA IF NOT EXISTS audit;
COMMENT ON SCHEMA audit IS 'Read-only views for auditors: the log of events, the personal documents, and three views derived from both.';

-- Roles belong to the whole server, so a migration of another database may create them at the same time. The exception handlers ignore that.
-- A migrating role without the right to create roles remains the owner of everything. The service then logs a warning at its start.
DO $$
DECLARE wanted text;
BEGIN
  FOREACH wanted IN ARRAY ARRAY['vatproof_owner', 'vatproof_service', 'vatproof_auditor'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
      BEGIN
        EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
      EXCEPTION WHEN duplicate_object OR unique_violation OR insufficient_privilege THEN NULL;
      END;
    END IF;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) AND NOT pg_has_role(current_user, wanted, 'MEMBER') THEN
      BEGIN
        EXECUTE format('GRANT %I TO CURRENT_USER', wanted);
      EXCEPTION WHEN insufficient_privilege THEN NULL;
      END;
    END IF;
  END LOOP;
END $$;
