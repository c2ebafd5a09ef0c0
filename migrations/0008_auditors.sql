-- Auditors may read the log over HTTP, with a token.

CREATE TABLE vatproof.auditors (
  auditor_id uuid PRIMARY KEY,
  account_id uuid REFERENCES vatproof.accounts,
  token_sha256 bytea NOT NULL UNIQUE CHECK (octet_length(token_sha256) = 32),
  name text NOT NULL,
  added_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  revoked_at timestamptz
);
COMMENT ON TABLE vatproof.auditors IS 'Auditors'' tokens, kept in the transaction of their events (streams auditor-<id>), because every request of theirs is decided on them.';
COMMENT ON COLUMN vatproof.auditors.account_id IS 'The one account the auditor may look at; null means all.';
COMMENT ON COLUMN vatproof.auditors.token_sha256 IS 'SHA-256 of the token. The token itself is stored nowhere.';
COMMENT ON COLUMN vatproof.auditors.name IS 'Who got the token, for the operator. It may name a person, so it is in no event.';
