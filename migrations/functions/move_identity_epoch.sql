-- Invalidates the caller caches of all replicas: a revoked key or changed plan increases the epoch, and the next append of a replica detects it.
CREATE OR REPLACE FUNCTION vatproof.move_identity_epoch() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = vatproof, pg_temp AS $$
BEGIN
  UPDATE logs SET identity_epoch = identity_epoch + 1;
  RETURN NULL;
END $$;
