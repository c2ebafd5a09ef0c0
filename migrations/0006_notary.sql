-- The notary's tables: the log's Merkle tree in tiles (c2sp.org/tlog-tiles), and its signed checkpoints
-- (c2sp.org/tlog-checkpoint). Both are append-only. The signing key is not in the database, so a database administrator cannot sign altered events.

CREATE TABLE vatproof.tiles (
  log_id smallint NOT NULL,
  level smallint NOT NULL CHECK (level BETWEEN 0 AND 63),
  index bigint NOT NULL CHECK (index >= 0),
  hashes bytea NOT NULL CHECK (octet_length(hashes) >= 32 AND octet_length(hashes) <= 8192 AND octet_length(hashes) % 32 = 0),
  PRIMARY KEY (log_id, level, index)
);
-- A full tile is 8 KiB of hashes, which do not compress.
ALTER TABLE vatproof.tiles ALTER COLUMN hashes SET STORAGE EXTERNAL;
COMMENT ON TABLE vatproof.tiles IS 'Hashes of the Merkle tree. A tile has up to 256 adjacent hashes, of 32 bytes each, from level 8*level of the tree. New hashes are only appended.';

CREATE TABLE vatproof.checkpoints (
  log_id smallint NOT NULL,
  size bigint NOT NULL CHECK (size >= 0),
  note text NOT NULL,
  signed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (log_id, size)
);
COMMENT ON TABLE vatproof.checkpoints IS 'Signed checkpoints. A note has the number of events and the Merkle root. The first checkpoint covers at most the event that opened the log.';
COMMENT ON COLUMN vatproof.checkpoints.note IS 'The signed note, exactly as published.';

-- The lease of the replica that signs. The lease only prevents duplicate work: without it, notarize() would still accept only a checkpoint that
-- extends the newest one.
CREATE TABLE vatproof.notaries (
  log_id smallint PRIMARY KEY,
  holder uuid,
  held_until timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50);
INSERT INTO vatproof.notaries (log_id) VALUES (0);

-- The lease of the replica that verifies the log in the background (the scrubber), and the position up to which it is verified.
CREATE TABLE vatproof.scrubs (
  log_id smallint PRIMARY KEY,
  holder uuid,
  held_until timestamptz NOT NULL DEFAULT '-infinity',
  position bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
INSERT INTO vatproof.scrubs (log_id) VALUES (0);
