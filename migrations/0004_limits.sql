-- Limits on calls, shared by all replicas. They are no facts: a crash may lose the last instants.
--
-- The clock of the database may be set back, or a standby takes over whose clock is behind. recorded_at never falls, but a window must not
-- last as long as the clock is behind. So limits count by the clock as it is, and a window that ends later than a new one could has ended.
-- Another session may have begun its window between two readings of the clock, hence twice the length and the tolerance of a minute.

-- Calls counted in a fixed window.
CREATE TABLE vatproof.rate_windows (
  bucket text COLLATE "C" PRIMARY KEY,
  taken bigint NOT NULL,
  ends_at timestamptz NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX rate_windows_ends_at ON vatproof.rate_windows (ends_at);

-- Sliding windows for small limits: one row per slot taken in the window that ends now.
CREATE TABLE vatproof.rate_slots (
  bucket text COLLATE "C" PRIMARY KEY,
  taken_at timestamptz[] NOT NULL,
  ends_at timestamptz NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX rate_slots_ends_at ON vatproof.rate_slots (ends_at);
