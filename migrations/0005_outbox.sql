-- Mails. A row is written in the transaction that requests the mail, so a mail is sent if and only if that one commits, and it survives a
-- restart. The row keeps the address and the token only until the mail is settled.
--
--   waiting      is sent as soon as due_at has passed
--   claimed      a worker talks to the mail server; if the worker dies, another one starts anew once due_at has passed
--   sent         the server accepted it                   refused      the server refused it permanently
--   expired      the token expired before it was sent     needless     the account was verified meanwhile
--   superseded   a newer mail for the same purpose replaces it
CREATE TABLE vatproof.outbox (
  mail_id uuid PRIMARY KEY,
  account_id uuid NOT NULL REFERENCES vatproof.contacts ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
  purpose text COLLATE "C" NOT NULL CHECK (purpose IN ('verify_email', 'reset_password')),
  state text COLLATE "C" NOT NULL DEFAULT 'waiting' CHECK (state IN
    ('waiting', 'claimed', 'sent', 'refused', 'expired', 'needless', 'superseded')),
  email text,
  token text,
  requested_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  due_at timestamptz NOT NULL DEFAULT now(),
  claim uuid,
  attempts int NOT NULL DEFAULT 0,
  reply text,
  settled_at timestamptz,
  traceparent text CHECK (traceparent ~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$'),
  CHECK ((settled_at IS NULL) = (state IN ('waiting', 'claimed'))),
  CHECK (CASE WHEN settled_at IS NULL THEN email IS NOT NULL AND token IS NOT NULL ELSE email IS NULL AND token IS NULL END)
) WITH (fillfactor = 50);
COMMENT ON COLUMN vatproof.outbox.due_at IS 'When the next attempt may start; while a worker has the mail, when it is taken to be dead.';
COMMENT ON COLUMN vatproof.outbox.claim IS 'The attempt that has the mail: an attempt that lost it can change nothing any more.';
COMMENT ON COLUMN vatproof.outbox.reply IS 'What the last attempt came to: the mail server''s code, or what failed. Never its text, which may hold the address.';
COMMENT ON COLUMN vatproof.outbox.traceparent IS 'The span that asked for the mail, as W3C Trace Context writes it; null where there was none.';
CREATE INDEX outbox_due_at ON vatproof.outbox (due_at) WHERE settled_at IS NULL;
CREATE INDEX outbox_account_id ON vatproof.outbox (account_id);
CREATE INDEX outbox_settled_at ON vatproof.outbox (settled_at) WHERE settled_at IS NOT NULL;
