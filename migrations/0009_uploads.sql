-- Spool of uploaded batch items: one chunk of up to 500 items per row. A row is deleted when its items are appended to the log. The spool bounds
-- the memory that an upload needs, and the time for which accepting the upload locks the log. A rejected upload deletes its rows; housekeeping deletes
-- the rows of interrupted uploads.
CREATE TABLE vatproof.uploads (
  upload_id uuid NOT NULL,
  chunk int NOT NULL,
  account_id uuid NOT NULL,
  batch_id uuid,
  items text NOT NULL,
  document text,
  spooled_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (upload_id, chunk)
);
COMMENT ON COLUMN vatproof.uploads.batch_id IS 'The accepted batch; null during the upload.';
COMMENT ON COLUMN vatproof.uploads.items IS 'JSON: VAT IDs and duplicates, with the fields of the event BatchItemsAccepted.';
COMMENT ON COLUMN vatproof.uploads.document IS 'JSON: the personal document of the event BatchItemsAccepted; null after its erasure.';
CREATE UNIQUE INDEX uploads_of_batch ON vatproof.uploads (batch_id, chunk) WHERE batch_id IS NOT NULL;
CREATE INDEX uploads_of_account ON vatproof.uploads (account_id);
CREATE INDEX uploads_left_behind ON vatproof.uploads (spooled_at) WHERE batch_id IS NULL;
