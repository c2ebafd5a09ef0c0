-- Auditors may read the log over HTTP, with a token.

CREATE TABLE vatproof.auditors (
  auditor_id uuid PRIMARY KEY,
  account_id uuid,
  token_sha256 bytea NOT NULL UNIQUE CHECK (octet_length(token_sha256) = 32),
  name text NOT NULL,
  added_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  revoked_at timestamptz
);
COMMENT ON TABLE vatproof.auditors IS 'Auditors'' tokens, a projection of the streams auditor-<id> moved by vatproof.append, because every request of theirs is decided on them.';
COMMENT ON COLUMN vatproof.auditors.account_id IS 'The one account the auditor may look at; null means all.';
COMMENT ON COLUMN vatproof.auditors.token_sha256 IS 'SHA-256 of the token. The token itself is stored nowhere.';
COMMENT ON COLUMN vatproof.auditors.name IS 'Who got the token.';
