-- Mails that were asked for. A row is written in the transaction that asks, so a mail is sent if and only if that one commits, and it
-- survives a restart. The address and the token are in the row only for as long as they are needed to send it.
--
--   waiting      is sent as soon as due_at has passed
--   claimed      a worker is talking to the mail server; if the worker dies, another one starts anew once due_at has passed
--   handed_over  the worker has committed that the server may accept the mail from now on; if the worker dies, nobody knows whether it did
--   sent         the server accepted it                    refused      the server refused it for good
--   expired      the token ran out before anybody took it  needless     the account was verified meanwhile
--   superseded   a newer mail takes its place              unknown      it may have been accepted, so it is never sent again
CREATE TABLE vatproof.outbox (
  mail_id uuid PRIMARY KEY,
  account_id uuid NOT NULL REFERENCES vatproof.contacts ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
  state text COLLATE "C" NOT NULL DEFAULT 'waiting' CHECK (state IN
    ('waiting', 'claimed', 'handed_over', 'sent', 'refused', 'expired', 'needless', 'superseded', 'unknown')),
  email text,
  token text,
  requested_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  due_at timestamptz NOT NULL DEFAULT now(),
  claim uuid,
  attempts int NOT NULL DEFAULT 0,
  reply text,
  settled_at timestamptz,
  CHECK ((settled_at IS NULL) = (state IN ('waiting', 'claimed', 'handed_over'))),
  CHECK (CASE WHEN settled_at IS NULL THEN email IS NOT NULL AND token IS NOT NULL ELSE email IS NULL AND token IS NULL END)
) WITH (fillfactor = 50);
COMMENT ON COLUMN vatproof.outbox.due_at IS 'When the next attempt may start; while a worker has the mail, when it is taken to be dead.';
COMMENT ON COLUMN vatproof.outbox.claim IS 'The attempt that has the mail: an attempt that lost it can change nothing any more.';
COMMENT ON COLUMN vatproof.outbox.reply IS 'What the last attempt came to: the mail server''s code, or what failed. Never its text, which may hold the address.';
CREATE INDEX outbox_due_at ON vatproof.outbox (due_at) WHERE settled_at IS NULL;
CREATE INDEX outbox_account_id ON vatproof.outbox (account_id);
CREATE INDEX outbox_settled_at ON vatproof.outbox (settled_at) WHERE settled_at IS NOT NULL;

-- Settles what needs no further attempt and claims at most one mail that is due. Gives back what it changed: settled mails without
-- address and token, the claimed one with both. Any number of workers may call it at once.
CREATE FUNCTION vatproof.claim_mail(p_claim uuid, p_lease_ms bigint)
RETURNS TABLE (mail_id uuid, state text, email text, token text, requested_at timestamptz, expires_at timestamptz, attempts int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = vatproof, pg_temp AS $$
#variable_conflict use_column
DECLARE
  moment CONSTANT timestamptz := clock_timestamp();
BEGIN
  DELETE FROM outbox WHERE mail_id IN (
    SELECT o.mail_id FROM outbox o WHERE o.settled_at < moment - interval '30 days' LIMIT 100 FOR UPDATE SKIP LOCKED);

  RETURN QUERY
  UPDATE outbox AS o SET settled_at = moment, email = NULL, token = NULL,
    state = CASE WHEN o.state = 'handed_over' THEN 'unknown' WHEN a.verified_at IS NOT NULL THEN 'needless' ELSE 'expired' END
  FROM accounts a
  WHERE a.account_id = o.account_id AND o.mail_id IN (
    SELECT p.mail_id FROM outbox p JOIN accounts b ON b.account_id = p.account_id
    WHERE p.settled_at IS NULL AND p.due_at <= moment AND (p.state = 'handed_over' OR p.expires_at <= moment OR b.verified_at IS NOT NULL)
    ORDER BY p.due_at LIMIT 100 FOR UPDATE OF p SKIP LOCKED)
  RETURNING o.mail_id, o.state, NULL, NULL, o.requested_at, o.expires_at, o.attempts;

  RETURN QUERY
  UPDATE outbox AS o SET state = 'claimed', claim = p_claim, attempts = o.attempts + 1, due_at = moment + p_lease_ms * interval '1 millisecond'
  WHERE o.mail_id = (
    SELECT p.mail_id FROM outbox p
    WHERE p.settled_at IS NULL AND p.due_at <= moment AND p.state IN ('waiting', 'claimed') AND p.expires_at > moment
    ORDER BY p.due_at LIMIT 1 FOR UPDATE SKIP LOCKED)
  RETURNING o.mail_id, o.state, o.email, o.token, o.requested_at, o.expires_at, o.attempts;
END $$;

REVOKE ALL ON FUNCTION vatproof.claim_mail FROM PUBLIC;

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'vatproof_service') THEN
    GRANT SELECT, INSERT, UPDATE, DELETE ON vatproof.outbox TO vatproof_service;
    GRANT EXECUTE ON FUNCTION vatproof.claim_mail TO vatproof_service;
  END IF;
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'vatproof_owner') AND pg_has_role(current_user, 'vatproof_owner', 'MEMBER') THEN
    ALTER TABLE vatproof.outbox OWNER TO vatproof_owner;
    ALTER FUNCTION vatproof.claim_mail OWNER TO vatproof_owner;
  END IF;
EXCEPTION WHEN insufficient_privilege THEN
  RAISE NOTICE 'vatproof_owner cannot own the outbox here: %', SQLERRM;
END $$;
