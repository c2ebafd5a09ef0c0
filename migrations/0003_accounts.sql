-- Account data that is not in the log, because it must be erasable or because no event is needed. No foreign key references a projection,
-- such as accounts: the append inserts its rows at the end of a transaction, and a rebuild may delete and insert them again.

-- Contact data. Rows of other tables that depend on it are erased with it.
CREATE TABLE vatproof.contacts (
  account_id uuid PRIMARY KEY,
  email text,
  email_key text COLLATE "C" UNIQUE,
  password_hash text,
  token_epoch int NOT NULL DEFAULT 0,
  agent_id text
);
-- Several accounts may have the same agent id. Account ids increase with time, so the index finds the newest of these accounts.
CREATE INDEX contacts_agent_id ON vatproof.contacts (agent_id, account_id) WHERE agent_id IS NOT NULL;
COMMENT ON TABLE vatproof.contacts IS 'Personal data of accounts. It is outside of the log, so that it can be erased.';
COMMENT ON COLUMN vatproof.contacts.email_key IS 'The address in lower case, for case-insensitive comparison.';

COMMENT ON COLUMN vatproof.contacts.token_epoch IS 'Increases with every new password. A login token is valid only in the epoch of its issue.';

CREATE TABLE vatproof.mail_tokens (
  token_sha256 bytea PRIMARY KEY CHECK (octet_length(token_sha256) = 32),
  account_id uuid NOT NULL REFERENCES vatproof.contacts ON DELETE CASCADE,
  purpose text COLLATE "C" NOT NULL CHECK (purpose IN ('verify_email', 'reset_password')),
  issued_at timestamptz NOT NULL
);
CREATE INDEX mail_tokens_account_id ON vatproof.mail_tokens (account_id);
CREATE INDEX mail_tokens_issued_at ON vatproof.mail_tokens (issued_at);
COMMENT ON TABLE vatproof.mail_tokens IS 'Tokens of mailed links, as SHA-256. A token is deleted after its use.';

CREATE TABLE vatproof.api_key_labels (
  key_id uuid PRIMARY KEY,
  account_id uuid NOT NULL REFERENCES vatproof.contacts ON DELETE CASCADE,
  label text NOT NULL
);
CREATE INDEX api_key_labels_account_id ON vatproof.api_key_labels (account_id);
COMMENT ON TABLE vatproof.api_key_labels IS 'Labels of API keys. A label may name a person, so it must be erasable and is not in the log.';

-- The secret key for keyed hashes, for example of client addresses. The database generates it once. Without this key, a hash cannot be traced to
-- its address.
CREATE TABLE vatproof.hash_key (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  key bytea NOT NULL CHECK (octet_length(key) = 32)
);
INSERT INTO vatproof.hash_key (key) VALUES (sha256(gen_random_uuid()::text::bytea || gen_random_uuid()::text::bytea || gen_random_uuid()::text::bytea));
