-- One row for each projection, a table that is computed from the log (projections.sql): the version of the rules that filled the table and, for
-- an asynchronous projection, the position that it has reached.

CREATE TABLE vatproof.projections (
  log_id smallint NOT NULL,
  name text COLLATE "C" NOT NULL,
  version int NOT NULL,
  position bigint CHECK (position >= 0),
  moved_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (log_id, name)
) WITH (fillfactor = 50);
COMMENT ON TABLE vatproof.projections IS 'State of each projection. The lock on a row ensures that only one replica at a time updates an asynchronous projection.';
COMMENT ON COLUMN vatproof.projections.position IS 'Position of the next event to apply: the table covers all events below it. Null for a table that the append updates.';
COMMENT ON COLUMN vatproof.projections.version IS 'Version of the rules that filled the table. If the program has a newer version, the table must be rebuilt.';

INSERT INTO vatproof.projections (log_id, name, version, position) VALUES
  (0, 'streams', 1, NULL), (0, 'meters', 1, NULL), (0, 'latest', 1, NULL), (0, 'listed', 1, NULL), (0, 'accounts', 1, NULL), (0, 'api_keys', 1, NULL),
  (0, 'auditors', 1, NULL), (0, 'tasks', 1, NULL), (0, 'batches', 1, NULL), (0, 'event_index', 1, 0), (0, 'source_hours', 1, 0);
