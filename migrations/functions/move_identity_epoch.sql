-- Invalidates the cached callers of all replicas. The triggers call it for a revoked key or a changed plan. It increases the identity epoch, which
-- every append compares with the epoch of its caller.
CREATE OR REPLACE FUNCTION vatproof.move_identity_epoch() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = vatproof, pg_temp AS $$
BEGIN
  UPDATE logs SET identity_epoch = identity_epoch + 1;
  RETURN NULL;
END $$;
