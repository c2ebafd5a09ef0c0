-- Items of batches while they are uploaded, 500 a row, until the row's items are in the log: so an upload needs little memory, and its acceptance
-- is short. They are no facts of the log yet. A wrong upload deletes its rows; housekeeping deletes those that were left behind.
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
COMMENT ON COLUMN vatproof.uploads.items IS 'JSON: VAT IDs and duplicates, as BatchItemsAccepted has them.';
COMMENT ON COLUMN vatproof.uploads.document IS 'JSON: the personal document of BatchItemsAccepted; null once erased.';
CREATE UNIQUE INDEX uploads_of_batch ON vatproof.uploads (batch_id, chunk) WHERE batch_id IS NOT NULL;
CREATE INDEX uploads_of_account ON vatproof.uploads (account_id);
CREATE INDEX uploads_left_behind ON vatproof.uploads (spooled_at) WHERE batch_id IS NULL;
