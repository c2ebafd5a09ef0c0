-- Replicas cache callers. A revoked key or changed plan increases the epoch, and the next append of each replica detects it.
CREATE OR REPLACE FUNCTION vatproof.move_identity_epoch() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = vatproof, pg_temp AS $$
BEGIN
  UPDATE logs SET identity_epoch = identity_epoch + 1;
  RETURN NULL;
END $$;
