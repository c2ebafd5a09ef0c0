-- The append-only log: every fact once, in the order of its commit, at a dense position.
--
-- log_id leads every key, so that the same tables can be distributed by it; there is one log (0) at launch.
-- Correctness needs no sequences, advisory locks or notifications: the row of the log in vatproof.logs is the only lock.

CREATE TABLE vatproof.logs (
  log_id smallint PRIMARY KEY,
  next_position bigint NOT NULL DEFAULT 0 CHECK (next_position >= 0),
  last_recorded_at timestamptz NOT NULL DEFAULT '-infinity',
  identity_epoch bigint NOT NULL DEFAULT 0
);
COMMENT ON COLUMN vatproof.logs.identity_epoch IS 'Moves with every revoked key and changed plan: what a replica remembers of callers is true as long as it stands.';
COMMENT ON TABLE vatproof.logs IS 'One row a log. Its lock, held to the commit, is what makes positions dense and in commit order.';
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
COMMENT ON TABLE vatproof.events IS 'The facts. Append-only: written by vatproof.append alone, never changed, never removed.';
COMMENT ON COLUMN vatproof.events.position IS 'Dense from 0 in commit order; also the index of the leaf in the Merkle tree.';
COMMENT ON COLUMN vatproof.events.version IS 'Dense from 1 within the stream.';
COMMENT ON COLUMN vatproof.events.event_id IS 'UUIDv7 of the writer, or UUIDv8 computed from what the event settles; sending it again appends nothing.';
COMMENT ON COLUMN vatproof.events.causation_id IS 'The task that the event closes (vatproof.tasks); null for all others.';
COMMENT ON COLUMN vatproof.events.occurred_at IS 'When it happened, by the clock of the replica that saw it.';
COMMENT ON COLUMN vatproof.events.recorded_at IS 'When it was stored, by the clock of the database; never before that of the position below it.';
COMMENT ON COLUMN vatproof.events.meter_id IS 'What the event is charged to: a key and its month (UTC), or an anonymous address.';
COMMENT ON COLUMN vatproof.events.units IS 'How many units are charged: 0 or 1 for a validation.';
COMMENT ON COLUMN vatproof.events.data IS 'Canonical JSON (RFC 8785), exactly the bytes that are hashed.';
COMMENT ON COLUMN vatproof.events.metadata IS 'Canonical JSON (RFC 8785): the request it belongs to.';
