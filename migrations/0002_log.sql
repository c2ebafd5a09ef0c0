-- The append-only log. Each event is stored once. Positions count from 0 in commit order, without gaps.
--
-- log_id is the first column of each primary key here, so that a later version can distribute the tables by log. Only log 0 exists.
-- The lock on the row of the log in vatproof.logs serializes all appends. The log uses no sequences, advisory locks or notifications.

CREATE TABLE vatproof.logs (
  log_id smallint PRIMARY KEY,
  next_position bigint NOT NULL DEFAULT 0 CHECK (next_position >= 0),
  last_recorded_at timestamptz NOT NULL DEFAULT '-infinity',
  identity_epoch bigint NOT NULL DEFAULT 0
);
COMMENT ON COLUMN vatproof.logs.identity_epoch IS 'Increases when an API key or the plan of an account changes. A cached caller is valid only in the epoch in which a replica read it.';
COMMENT ON TABLE vatproof.logs IS 'One row per log. The append locks the row until the commit, so positions have no gaps and are in commit order.';
INSERT INTO vatproof.logs (log_id) VALUES (0);

CREATE TABLE vatproof.events (
  log_id smallint NOT NULL,
  position bigint NOT NULL,
  stream_id text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  event_id uuid NOT NULL,
  type text COLLATE "C" NOT NULL,
  schema_version smallint NOT NULL,
  occurred_at timestamptz NOT NULL,
  recorded_at timestamptz NOT NULL,
  correlation_id uuid NOT NULL,
  causation_id uuid,
  trace_id bytea CHECK (octet_length(trace_id) = 16),
  meter_id text COLLATE "C",
  units smallint NOT NULL DEFAULT 0 CHECK (units >= 0),
  data text NOT NULL,
  metadata text NOT NULL,
  PRIMARY KEY (log_id, position)
) PARTITION BY RANGE (position);
COMMENT ON TABLE vatproof.events IS 'The events. Only vatproof.append stores them, and nothing changes or removes them.';
COMMENT ON COLUMN vatproof.events.position IS 'Number of the event in commit order, from 0 without gaps; also the index of its leaf in the Merkle tree.';
COMMENT ON COLUMN vatproof.events.version IS 'Number of the event within its stream, from 1 without gaps.';
COMMENT ON COLUMN vatproof.events.event_id IS 'A UUIDv7 that the service generates, or a UUIDv8 computed from the operation. An append of an existing id stores nothing.';
COMMENT ON COLUMN vatproof.events.causation_id IS 'The task (vatproof.tasks) that the event closes; null if it closes none.';
COMMENT ON COLUMN vatproof.events.occurred_at IS 'Time of the event by the clock of the replica.';
COMMENT ON COLUMN vatproof.events.recorded_at IS 'Time of the append by the clock of the database. Never decreases with the position.';
COMMENT ON COLUMN vatproof.events.meter_id IS 'Meter that the event charges: a key and its month (UTC), or an anonymous address.';
COMMENT ON COLUMN vatproof.events.units IS 'Charged units: 0 or 1 for a validation.';
COMMENT ON COLUMN vatproof.events.data IS 'The content as canonical JSON (RFC 8785): exactly the bytes that are hashed.';
COMMENT ON COLUMN vatproof.events.metadata IS 'Cause of the event, such as the request or the operator, as canonical JSON (RFC 8785).';
