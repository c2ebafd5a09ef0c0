-- Accounts and API keys: projections of the streams account-<id>, moved by vatproof.append, because decisions read them. No foreign key leads to
-- a projection: its rows appear at the end of a transaction, and a rebuild may remove and restore them.

CREATE TABLE vatproof.accounts (
  account_id uuid PRIMARY KEY,
  plan text NOT NULL CHECK (plan IN ('free', 'starter', 'business', 'enterprise')),
  per_month bigint CHECK (per_month > 0),
  verified_at timestamptz,
  created_at timestamptz NOT NULL
);
COMMENT ON COLUMN vatproof.accounts.per_month IS 'Validations per month set for this account alone; null means the plan''s.';

CREATE TABLE vatproof.api_keys (
  key_id uuid PRIMARY KEY,
  account_id uuid NOT NULL,
  key_sha256 bytea NOT NULL UNIQUE CHECK (octet_length(key_sha256) = 32),
  prefix text COLLATE "C" NOT NULL,
  issued_at timestamptz NOT NULL,
  revoked_at timestamptz,
  previous_sha256 bytea UNIQUE CHECK (octet_length(previous_sha256) = 32),
  previous_until timestamptz,
  UNIQUE (account_id, prefix)
);
COMMENT ON COLUMN vatproof.api_keys.key_sha256 IS 'SHA-256 of the key. The key itself is stored nowhere.';
COMMENT ON COLUMN vatproof.api_keys.previous_sha256 IS 'SHA-256 of the secret that the key had before its last rotation, if that is good until previous_until.';

-- Contact data is no event: it can be erased, with all that refers to it.
CREATE TABLE vatproof.contacts (
  account_id uuid PRIMARY KEY,
  email text,
  email_key text COLLATE "C" UNIQUE,
  password_hash text,
  token_epoch int NOT NULL DEFAULT 0,
  agent_id text
);
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
