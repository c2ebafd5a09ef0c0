-- Locks an account until the end of the transaction, so that decisions about it are serialized. Returns false if the account does
-- not exist.
CREATE OR REPLACE FUNCTION vatproof.lock_account(p_account uuid) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off
AS $$
BEGIN
  PERFORM FROM accounts WHERE account_id = p_account FOR NO KEY UPDATE;
  RETURN FOUND;
END $$;
