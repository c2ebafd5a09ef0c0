-- A replica looks at its start whether everything is applied. Its role may look, and applies nothing.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'vatproof_service') THEN
    GRANT SELECT ON vatproof_migrations TO vatproof_service;
  END IF;
END $$;
