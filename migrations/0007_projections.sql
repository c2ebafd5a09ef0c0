-- Projections that follow the log: read models that any replica can move, and that can be rebuilt beside the live one. The projection
-- <name> is the table vatproof.<name>. A rebuilt table has its indexes under other names, so they have none of their own here.

CREATE TABLE vatproof.projections (
  log_id smallint NOT NULL,
  name text COLLATE "C" NOT NULL,
  version int NOT NULL,
  position bigint NOT NULL DEFAULT 0 CHECK (position >= 0),
  moved_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (log_id, name)
) WITH (fillfactor = 50);
COMMENT ON TABLE vatproof.projections IS 'How far each projection has followed the log. The lock of its row makes one replica at a time move it.';
COMMENT ON COLUMN vatproof.projections.position IS 'The next position to apply: everything below it is in the table.';
COMMENT ON COLUMN vatproof.projections.version IS 'Version of the rules that filled the table; older than the program''s means that a rebuild is due.';

CREATE TABLE vatproof.event_places (
  log_id smallint NOT NULL,
  position bigint NOT NULL,
  type text COLLATE "C" NOT NULL,
  account_id uuid,
  key_id uuid,
  vat_id text COLLATE "C",
  receipt_id text COLLATE "C",
  PRIMARY KEY (log_id, position)
);
-- Nearly all events are VatIdVerified. They are in no index by type, which would be the log once more, and in none by account: the log's index
-- by stream and version finds them by the account's keys. VAT IDs are indexed in segments of 2^18 positions: new entries go to the newest
-- segment only, which stays in memory however long the log grows.
CREATE INDEX ON vatproof.event_places (log_id, type, position) WHERE type <> 'VatIdVerified';
CREATE INDEX ON vatproof.event_places (log_id, account_id, position) WHERE account_id IS NOT NULL AND type <> 'VatIdVerified';
CREATE INDEX ON vatproof.event_places (log_id, key_id, position) WHERE key_id IS NOT NULL AND type <> 'VatIdVerified';
CREATE INDEX ON vatproof.event_places (log_id, ((position >> 18)::int), vat_id) WHERE vat_id IS NOT NULL;
CREATE INDEX ON vatproof.event_places (log_id, receipt_id, position) WHERE receipt_id IS NOT NULL;
COMMENT ON TABLE vatproof.event_places IS 'Where to look in the log: the positions of the events of a type, an account, an API key, a VAT ID, a receipt. A projection.';
