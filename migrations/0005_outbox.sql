-- Outbox of mails. The transaction that requests a mail writes its row. A rollback discards the mail; a committed mail is sent, even after a restart.
-- The row has the address until the mail is settled. The token of the link is a keyed hash of mail_id, and is stored nowhere. The states are:
--
--   waiting      not settled; the next attempt is due at due_at
--   claimed      not settled; a replica is sending it. If the replica dies, its lease expires at due_at and another replica sends the mail
--   sent         the server accepted it                   refused      the server refused it permanently
--   expired      its token expired before the delivery    needless     the account was verified already
--   superseded   a newer mail for the same purpose replaces it
CREATE TABLE vatproof.outbox (
  mail_id uuid PRIMARY KEY,
  account_id uuid NOT NULL REFERENCES vatproof.contacts ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
  purpose text COLLATE "C" NOT NULL CHECK (purpose IN ('verify_email', 'reset_password')),
  state text COLLATE "C" NOT NULL DEFAULT 'waiting' CHECK (state IN
    ('waiting', 'claimed', 'sent', 'refused', 'expired', 'needless', 'superseded')),
  email text,
  requested_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  due_at timestamptz NOT NULL DEFAULT now(),
  claim uuid,
  attempts int NOT NULL DEFAULT 0,
  reply text,
  settled_at timestamptz,
  traceparent text CHECK (traceparent ~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$'),
  CHECK ((settled_at IS NULL) = (state IN ('waiting', 'claimed'))),
  CHECK (CASE WHEN settled_at IS NULL THEN email IS NOT NULL ELSE email IS NULL END)
) WITH (fillfactor = 50);
COMMENT ON COLUMN vatproof.outbox.due_at IS 'Time of the next attempt. For a claimed mail: end of the lease.';
COMMENT ON COLUMN vatproof.outbox.claim IS 'Id of the attempt that holds the lease. Updates by an attempt with another id have no effect.';
COMMENT ON COLUMN vatproof.outbox.reply IS 'Result of the last attempt: the code of the mail server, or the failed step. The text of the server is not stored, because it may contain the address.';
COMMENT ON COLUMN vatproof.outbox.traceparent IS 'Span of the request for the mail, in the format of W3C Trace Context; null without a span.';
CREATE INDEX outbox_due_at ON vatproof.outbox (due_at) WHERE settled_at IS NULL;
CREATE INDEX outbox_account_id ON vatproof.outbox (account_id);
CREATE INDEX outbox_settled_at ON vatproof.outbox (settled_at) WHERE settled_at IS NOT NULL;
