-- Invalidates the cached callers of all replicas by increasing the identity epoch, which every append compares with the epoch of its caller.
-- Triggers call it when an API key or the plan of an account changes.
CREATE OR REPLACE FUNCTION vatproof.move_identity_epoch() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = vatproof, pg_temp AS $$
BEGIN
  UPDATE logs SET identity_epoch = identity_epoch + 1;
  RETURN NULL;
END $$;
