-- Data of accounts outside of the log, because it is not a fact or must be erasable. No foreign key leads to a projection: its
-- rows appear at the end of a transaction, and a rebuild may remove and restore them.

-- Contact data is not in events, so that it can be erased with everything that refers to it.
CREATE TABLE vatproof.contacts (
  account_id uuid PRIMARY KEY,
  email text,
  email_key text COLLATE "C" UNIQUE,
  password_hash text,
  token_epoch int NOT NULL DEFAULT 0,
  agent_id text
);
-- Several agents may have the same id; the newest accounts are found first.
CREATE INDEX contacts_agent_id ON vatproof.contacts (agent_id, account_id) WHERE agent_id IS NOT NULL;
COMMENT ON TABLE vatproof.contacts IS 'Personal data of accounts, apart from the log so that it can be erased.';
COMMENT ON COLUMN vatproof.contacts.email_key IS 'The address in lower case: addresses are compared without regard to case.';

COMMENT ON COLUMN vatproof.contacts.token_epoch IS 'Counts the passwords. A login token is good in the epoch that it was issued in.';

CREATE TABLE vatproof.mail_tokens (
  token_sha256 bytea PRIMARY KEY CHECK (octet_length(token_sha256) = 32),
  account_id uuid NOT NULL REFERENCES vatproof.contacts ON DELETE CASCADE,
  purpose text COLLATE "C" NOT NULL CHECK (purpose IN ('verify_email', 'reset_password')),
  issued_at timestamptz NOT NULL
);
CREATE INDEX mail_tokens_account_id ON vatproof.mail_tokens (account_id);
CREATE INDEX mail_tokens_issued_at ON vatproof.mail_tokens (issued_at);
COMMENT ON TABLE vatproof.mail_tokens IS 'Tokens of mails, only their SHA-256. A used one is deleted.';

CREATE TABLE vatproof.api_key_labels (
  key_id uuid PRIMARY KEY,
  account_id uuid NOT NULL REFERENCES vatproof.contacts ON DELETE CASCADE,
  label text NOT NULL
);
CREATE INDEX api_key_labels_account_id ON vatproof.api_key_labels (account_id);
COMMENT ON TABLE vatproof.api_key_labels IS 'What people call their keys. It may name a person, so it is kept where it can be erased.';

-- The key of keyed hashes (client addresses, cursors), generated once by the database. Without it no hash leads back to an address.
CREATE TABLE vatproof.hash_key (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  key bytea NOT NULL CHECK (octet_length(key) = 32)
);
INSERT INTO vatproof.hash_key (key) VALUES (sha256(gen_random_uuid()::text::bytea || gen_random_uuid()::text::bytea || gen_random_uuid()::text::bytea));
