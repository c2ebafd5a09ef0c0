-- The notary's tables: the log's Merkle tree in tiles (c2sp.org/tlog-tiles), and its signed checkpoints
-- (c2sp.org/tlog-checkpoint). Both are append-only. The signing key is outside the database, so rewritten events and tiles cannot be signed here.

CREATE TABLE vatproof.tiles (
  log_id smallint NOT NULL,
  level smallint NOT NULL CHECK (level BETWEEN 0 AND 63),
  index bigint NOT NULL CHECK (index >= 0),
  hashes bytea NOT NULL CHECK (octet_length(hashes) BETWEEN 32 AND 8192 AND octet_length(hashes) % 32 = 0),
  PRIMARY KEY (log_id, level, index)
);
-- A full tile is 8 KiB of hashes, which do not compress.
ALTER TABLE vatproof.tiles ALTER COLUMN hashes SET STORAGE EXTERNAL;
COMMENT ON TABLE vatproof.tiles IS 'Nodes of the Merkle tree over the positions: up to 256 adjacent hashes of level 8*level, 32 bytes each. A tile is append-only.';

CREATE TABLE vatproof.checkpoints (
  log_id smallint NOT NULL,
  size bigint NOT NULL CHECK (size >= 0),
  note text NOT NULL,
  signed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (log_id, size)
);
COMMENT ON TABLE vatproof.checkpoints IS 'Signed checkpoints: the number of events and the Merkle root in the note. The first checkpoint covers the empty log.';
COMMENT ON COLUMN vatproof.checkpoints.note IS 'The signed note, exactly as published.';

-- The lease of the signing replica. It only prevents double work: notarize() rejects a checkpoint that does not extend the newest
-- one.
CREATE TABLE vatproof.notaries (
  log_id smallint PRIMARY KEY,
  holder uuid,
  held_until timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50);
INSERT INTO vatproof.notaries (log_id) VALUES (0);

-- The lease of the replica that verifies the log in the background, and its progress.
CREATE TABLE vatproof.scrubs (
  log_id smallint PRIMARY KEY,
  holder uuid,
  held_until timestamptz NOT NULL DEFAULT '-infinity',
  position bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
INSERT INTO vatproof.scrubs (log_id) VALUES (0);
