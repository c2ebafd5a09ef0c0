-- Settles due mails that need no further attempt, because their token has expired or their account was verified meanwhile. Then claims at most one
-- due mail. Returns all these mails: a settled mail without its address, which the function erases; the claimed mail with its address.
-- Also deletes mails that were settled more than 30 days ago. Any number of replicas can call the function concurrently.
CREATE OR REPLACE FUNCTION vatproof.claim_mail(p_claim uuid, p_lease_ms bigint)
RETURNS TABLE (mail_id uuid, account_id uuid, purpose text, state text, email text, requested_at timestamptz, expires_at timestamptz, attempts int)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  moment CONSTANT timestamptz := clock_timestamp();
BEGIN
  DELETE FROM outbox WHERE mail_id = ANY (ARRAY(
    SELECT o.mail_id FROM outbox o WHERE o.settled_at < moment - interval '30 days' LIMIT 100 FOR UPDATE SKIP LOCKED));

  RETURN QUERY
  UPDATE outbox AS o SET settled_at = moment, email = NULL,
    state = CASE WHEN o.purpose = 'verify_email' AND (SELECT a.verified_at FROM accounts a WHERE a.account_id = o.account_id) IS NOT NULL THEN 'needless' ELSE 'expired' END
  WHERE o.mail_id = ANY (ARRAY(
    SELECT p.mail_id FROM outbox p WHERE p.settled_at IS NULL AND p.due_at <= moment AND (p.expires_at <= moment
      OR p.purpose = 'verify_email' AND (SELECT a.verified_at FROM accounts a WHERE a.account_id = p.account_id) IS NOT NULL)
    ORDER BY p.due_at LIMIT 100 FOR UPDATE SKIP LOCKED))
  RETURNING o.mail_id, o.account_id, o.purpose, o.state, NULL, o.requested_at, o.expires_at, o.attempts;

  RETURN QUERY
  UPDATE outbox AS o SET state = 'claimed', claim = p_claim, attempts = o.attempts + 1, due_at = moment + p_lease_ms * interval '1 millisecond'
  WHERE o.mail_id = (
    SELECT p.mail_id FROM outbox p
    WHERE p.settled_at IS NULL AND p.due_at <= moment AND p.expires_at > moment
    ORDER BY p.due_at LIMIT 1 FOR UPDATE SKIP LOCKED)
  RETURNING o.mail_id, o.account_id, o.purpose, o.state, o.email, o.requested_at, o.expires_at, o.attempts;
END $$;
