-- Personal data of events, beside the log: written by vatproof.append with its event, bound to it by a digest, and erasable.

CREATE TABLE vatproof.personal_documents (
  log_id smallint NOT NULL,
  position bigint NOT NULL,
  document text,
  retain_until timestamptz NOT NULL,
  is_held boolean NOT NULL DEFAULT false,
  changed_by bigint CHECK (changed_by > position),
  PRIMARY KEY (log_id, position)
);
CREATE INDEX personal_documents_retain_until ON vatproof.personal_documents (log_id, retain_until, position)
  WHERE document IS NOT NULL AND NOT is_held;
COMMENT ON TABLE vatproof.personal_documents IS 'Names, addresses, company data, references of callers and exact exchanges. An event never changes; its document can be erased, with an event that says so.';
COMMENT ON COLUMN vatproof.personal_documents.position IS 'Position of the event that has the SHA-256 of the document (personal_sha256).';
COMMENT ON COLUMN vatproof.personal_documents.document IS 'Canonical JSON (RFC 8785) with a random salt, exactly the bytes that are hashed; null once erased.';
COMMENT ON COLUMN vatproof.personal_documents.retain_until IS 'When the retention period ends. Receipts are kept as long as their account is open.';
COMMENT ON COLUMN vatproof.personal_documents.is_held IS 'A legal hold: the document must not be erased.';
COMMENT ON COLUMN vatproof.personal_documents.changed_by IS 'Position of the event that erased, held or released it last.';
