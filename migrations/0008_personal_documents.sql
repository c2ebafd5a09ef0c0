-- Personal data of events, stored outside of the log so that it can be erased. vatproof.append stores a document together with its event. The
-- event has the SHA-256 of the document.

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
COMMENT ON TABLE vatproof.personal_documents IS 'Names, addresses, company data, references of callers, and exact exchanges with sources. A document can be erased; another event then records the erasure.';
COMMENT ON COLUMN vatproof.personal_documents.position IS 'Position of the event that has the SHA-256 of the document (personal_sha256).';
COMMENT ON COLUMN vatproof.personal_documents.document IS 'Canonical JSON (RFC 8785) with a random salt: exactly the bytes that are hashed. Null after the erasure.';
COMMENT ON COLUMN vatproof.personal_documents.retain_until IS 'End of the retention period. Receipts are kept at least while their account is open.';
COMMENT ON COLUMN vatproof.personal_documents.is_held IS 'Legal hold: the document must not be erased.';
COMMENT ON COLUMN vatproof.personal_documents.changed_by IS 'Position of the last event that erased the document, set a legal hold on it or lifted the hold; null without one.';
