-- The projections: tables whose rows functions/projections.sql computes from the events alone. To change the columns of a table, drop it in a
-- numbered file: this file creates it again, and `vatproof projections rebuild` fills it.

CREATE TABLE IF NOT EXISTS vatproof.streams (
  log_id smallint NOT NULL,
  stream_id text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  first_position bigint NOT NULL,
  last_position bigint NOT NULL,
  PRIMARY KEY (log_id, stream_id)
) WITH (fillfactor = 80);
COMMENT ON TABLE vatproof.streams IS 'Version of each stream: the number of its events.';

CREATE TABLE IF NOT EXISTS vatproof.meters (
  log_id smallint NOT NULL,
  meter_id text COLLATE "C" NOT NULL,
  used bigint NOT NULL CHECK (used >= 0),
  PRIMARY KEY (log_id, meter_id)
) WITH (fillfactor = 80);
COMMENT ON TABLE vatproof.meters IS 'Units charged to each meter: the sum of events.units of its events.';

-- The newest answer is the one with the latest time by the source's clock, because the slower of two concurrent lookups may return the older answer.
CREATE TABLE IF NOT EXISTS vatproof.latest (
  log_id smallint NOT NULL,
  key text COLLATE "C" NOT NULL,
  position bigint NOT NULL,
  as_of bigint NOT NULL,
  answered_at timestamptz NOT NULL,
  answer text NOT NULL,
  PRIMARY KEY (log_id, key)
) WITH (fillfactor = 80);
COMMENT ON TABLE vatproof.latest IS 'The newest answer of a source for each VAT ID, and the position of its event. Keys have the form answer-DE123456789.';
COMMENT ON COLUMN vatproof.latest.as_of IS 'Position of the last event about the answer: the answer itself, or its erasure. An answer that a replica has cached is valid only while as_of is the same.';
COMMENT ON COLUMN vatproof.latest.answered_at IS 'Time of the answer by the source''s clock, or the time of the append if that is earlier.';
COMMENT ON COLUMN vatproof.latest.answer IS 'The answer as JSON, without the evidence. Name and address are null after their erasure.';

CREATE TABLE IF NOT EXISTS vatproof.listed (
  log_id smallint NOT NULL,
  list text COLLATE "C" NOT NULL,
  position bigint NOT NULL,
  PRIMARY KEY (log_id, list, position)
);
COMMENT ON TABLE vatproof.listed IS 'Positions of events in lists. receipts-<key> lists the receipts of a key in the order of their issue; batch-<batch> lists the chunks of a batch in order.';

CREATE TABLE IF NOT EXISTS vatproof.accounts (
  account_id uuid PRIMARY KEY,
  plan text NOT NULL CHECK (plan IN ('free', 'starter', 'business', 'enterprise')),
  per_month bigint CHECK (per_month > 0),
  verified_at timestamptz,
  created_at timestamptz NOT NULL,
  closed_at timestamptz
);
COMMENT ON COLUMN vatproof.accounts.per_month IS 'Validations per month that the operator set for this account; null means the limit of its plan.';

CREATE TABLE IF NOT EXISTS vatproof.api_keys (
  key_id uuid PRIMARY KEY,
  account_id uuid NOT NULL,
  key_sha256 bytea NOT NULL UNIQUE CHECK (octet_length(key_sha256) = 32),
  prefix text COLLATE "C" NOT NULL,
  issued_at timestamptz NOT NULL,
  revoked_at timestamptz,
  previous_sha256 bytea UNIQUE CHECK (octet_length(previous_sha256) = 32),
  previous_until timestamptz,
  UNIQUE (account_id, prefix)
);
COMMENT ON COLUMN vatproof.api_keys.key_sha256 IS 'SHA-256 of the key. The key itself is stored nowhere.';
COMMENT ON COLUMN vatproof.api_keys.previous_sha256 IS 'SHA-256 of the former secret of a rotated key, which is valid until previous_until; null without one.';

CREATE TABLE IF NOT EXISTS vatproof.auditors (
  auditor_id uuid PRIMARY KEY,
  account_id uuid,
  token_sha256 bytea NOT NULL UNIQUE CHECK (octet_length(token_sha256) = 32),
  name text NOT NULL,
  added_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  revoked_at timestamptz
);
COMMENT ON TABLE vatproof.auditors IS 'Auditors and the hashes of their tokens. The append updates the table, because it authorizes every request of an auditor.';
COMMENT ON COLUMN vatproof.auditors.account_id IS 'The only account that the auditor may read; null means all accounts.';
COMMENT ON COLUMN vatproof.auditors.token_sha256 IS 'SHA-256 of the token. The token itself is stored nowhere.';
COMMENT ON COLUMN vatproof.auditors.name IS 'Name of the auditor.';

CREATE TABLE IF NOT EXISTS vatproof.tasks (
  log_id smallint NOT NULL,
  task_id uuid NOT NULL,
  position bigint NOT NULL,
  account_id uuid NOT NULL,
  key_id uuid NOT NULL,
  member_state text COLLATE "C" NOT NULL,
  vat_id text COLLATE "C" NOT NULL,
  reference_hash text COLLATE "C",
  batch_id uuid,
  item int,
  accepted_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  state text COLLATE "C" NOT NULL CHECK (state IN ('pending', 'final', 'expired', 'cancelled')),
  closed_by bigint,
  closed_at timestamptz,
  due_at timestamptz NOT NULL DEFAULT now(),
  claim uuid,
  attempts int NOT NULL DEFAULT 0,
  attempted_at timestamptz,
  failure text,
  PRIMARY KEY (log_id, task_id),
  CHECK ((state = 'pending') = (closed_by IS NULL))
) WITH (fillfactor = 80);
-- Of the indexes of vatproof.tasks, only the primary key starts with log_id, because in a small table the planner might use any index that starts
-- with log_id. The index tasks_open has the tasks that a replica can claim. It excludes tasks that wait for quota until resume_tasks makes them due.
-- Its third column is the batch, or the zero UUID for a single validation.
CREATE INDEX IF NOT EXISTS tasks_open ON vatproof.tasks (member_state, account_id, coalesce(batch_id, '00000000-0000-0000-0000-000000000000'::uuid), due_at)
  WHERE closed_by IS NULL AND failure IS DISTINCT FROM 'QUOTA';
-- Tasks that wait for quota.
CREATE INDEX IF NOT EXISTS tasks_paused ON vatproof.tasks (key_id, due_at) WHERE closed_by IS NULL AND failure = 'QUOTA';
CREATE INDEX IF NOT EXISTS tasks_expiry ON vatproof.tasks (expires_at) WHERE closed_by IS NULL;
CREATE INDEX IF NOT EXISTS tasks_of_key ON vatproof.tasks (key_id, state, position) WHERE batch_id IS NULL;
CREATE INDEX IF NOT EXISTS tasks_of_vat_id ON vatproof.tasks (key_id, vat_id, state, position) WHERE batch_id IS NULL;
CREATE INDEX IF NOT EXISTS tasks_closed_of_key ON vatproof.tasks (key_id, state, closed_by) WHERE batch_id IS NULL AND closed_by IS NOT NULL;
CREATE INDEX IF NOT EXISTS tasks_of_batch ON vatproof.tasks (batch_id, item) WHERE batch_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS tasks_open_of_batch ON vatproof.tasks (batch_id, item) WHERE batch_id IS NOT NULL AND closed_by IS NULL;
CREATE INDEX IF NOT EXISTS tasks_of_reference ON vatproof.tasks (key_id, reference_hash, state, position) WHERE reference_hash IS NOT NULL;
COMMENT ON TABLE vatproof.tasks IS 'Accepted validations and their states. The columns due_at, claim, attempts, attempted_at and failure schedule the attempts. They are not derived from the log: after a rebuild, every open task is due at once.';
COMMENT ON COLUMN vatproof.tasks.position IS 'Position of the event that accepted the task.';
COMMENT ON COLUMN vatproof.tasks.reference_hash IS 'Keyed hash of the caller''s reference, for searches. The personal document has the reference.';
COMMENT ON COLUMN vatproof.tasks.item IS 'Number of the item in its batch, from 0.';
COMMENT ON COLUMN vatproof.tasks.closed_by IS 'Position of the event that closed the task; null for an open task.';
COMMENT ON COLUMN vatproof.tasks.due_at IS 'Time of the next attempt. For a claimed task: end of the lease. A task that waits for quota is tried when its key has quota again, even if that is earlier or later.';
COMMENT ON COLUMN vatproof.tasks.claim IS 'Id of the attempt that holds the lease. Updates by an attempt with another id have no effect.';
COMMENT ON COLUMN vatproof.tasks.failure IS 'Failure of the last attempt: the source and its code (vies:MS_UNAVAILABLE), or QUOTA.';

CREATE TABLE IF NOT EXISTS vatproof.batches (
  batch_id uuid PRIMARY KEY,
  position bigint NOT NULL,
  account_id uuid NOT NULL,
  key_id uuid NOT NULL,
  items int NOT NULL,
  malformed int NOT NULL,
  duplicates int NOT NULL,
  request_hash text COLLATE "C",
  accepted_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  cancelled_by bigint,
  completed_by bigint
);
CREATE INDEX IF NOT EXISTS batches_of_key ON vatproof.batches (key_id, position);
CREATE INDEX IF NOT EXISTS batches_completed_of_key ON vatproof.batches (key_id, completed_by) WHERE completed_by IS NOT NULL;
CREATE INDEX IF NOT EXISTS batches_open ON vatproof.batches (batch_id) WHERE completed_by IS NULL;
CREATE INDEX IF NOT EXISTS batches_cancelled ON vatproof.batches (cancelled_by) WHERE cancelled_by IS NOT NULL;
COMMENT ON TABLE vatproof.batches IS 'Accepted batches. The table tasks has the states of their items.';
COMMENT ON COLUMN vatproof.batches.request_hash IS 'Keyed hash of the items; null without an Idempotency-Key.';
COMMENT ON COLUMN vatproof.batches.cancelled_by IS 'Position of the event that cancelled the batch; null without one.';
COMMENT ON COLUMN vatproof.batches.completed_by IS 'Position of the event that completed the batch; null while items are pending, and shortly after.';

CREATE TABLE IF NOT EXISTS vatproof.event_index (
  log_id smallint NOT NULL,
  position bigint NOT NULL,
  type text COLLATE "C" NOT NULL,
  account_id uuid,
  key_id uuid,
  vat_id text COLLATE "C",
  receipt_id text COLLATE "C",
  PRIMARY KEY (log_id, position)
);
-- Nearly all events are VatIdVerified. The indexes by type, account and key exclude these events, because otherwise each of these indexes would be as
-- large as the log. The VatIdVerified events of a key are found in the stream of the key, by the index of vatproof.events on stream and version. The
-- index by VAT ID contains all events about VAT IDs. It is ordered by segments of 2^18 positions, so new entries go only to the newest segment. An
-- insert therefore touches only a small part of the index, whatever the size of the log.
CREATE INDEX IF NOT EXISTS event_index_type ON vatproof.event_index (log_id, type, position) WHERE type <> 'VatIdVerified';
CREATE INDEX IF NOT EXISTS event_index_account ON vatproof.event_index (log_id, account_id, position) WHERE account_id IS NOT NULL AND type <> 'VatIdVerified';
CREATE INDEX IF NOT EXISTS event_index_key ON vatproof.event_index (log_id, key_id, position) WHERE key_id IS NOT NULL AND type <> 'VatIdVerified';
CREATE INDEX IF NOT EXISTS event_index_vat_id ON vatproof.event_index (log_id, ((position >> 18)::int), vat_id) WHERE vat_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS event_index_receipt ON vatproof.event_index (log_id, receipt_id, position) WHERE receipt_id IS NOT NULL;
COMMENT ON TABLE vatproof.event_index IS 'Index of the log: the positions of events by type, account, API key, VAT ID and receipt. An asynchronous projection.';

CREATE TABLE IF NOT EXISTS vatproof.source_hours (
  log_id smallint NOT NULL,
  hour timestamptz NOT NULL,
  member_state text COLLATE "C" NOT NULL,
  source text COLLATE "C" NOT NULL,
  outcome text COLLATE "C" NOT NULL,
  calls bigint NOT NULL,
  ms_sum bigint NOT NULL,
  ms_max int NOT NULL,
  last_position bigint NOT NULL,
  PRIMARY KEY (log_id, hour, member_state, source, outcome)
) WITH (fillfactor = 80);
COMMENT ON TABLE vatproof.source_hours IS 'Calls of sources per hour (UTC), as the attempts of the events name them. An asynchronous projection, whose rows are sums.';
COMMENT ON COLUMN vatproof.source_hours.member_state IS 'Prefix of the VAT IDs (Greece: EL, Northern Ireland: XI).';
COMMENT ON COLUMN vatproof.source_hours.outcome IS 'answered, or the code or reason of the failure.';
COMMENT ON COLUMN vatproof.source_hours.ms_sum IS 'Sum of the durations of the calls in milliseconds.';
COMMENT ON COLUMN vatproof.source_hours.last_position IS 'Position of the newest event that names such a call.';
