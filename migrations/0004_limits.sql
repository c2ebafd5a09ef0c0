-- Rate limits, shared by all replicas. They are not events: a crash may lose the last counts.
--
-- The clock of the database may be set back, or be behind after a failover. A window must not last until the clock has caught up. So limits use the
-- current clock, and a window that ends later than a new one would is expired. Another session may have started its window between two readings
-- of the clock, hence the factor of two and the tolerance of a minute.

-- Fixed windows: number of calls.
CREATE TABLE vatproof.rate_windows (
  bucket text COLLATE "C" PRIMARY KEY,
  taken bigint NOT NULL,
  ends_at timestamptz NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX rate_windows_ends_at ON vatproof.rate_windows (ends_at);

-- Sliding windows for small limits: the times at which the slots of a bucket were acquired.
CREATE TABLE vatproof.rate_slots (
  bucket text COLLATE "C" PRIMARY KEY,
  taken_at timestamptz[] NOT NULL,
  ends_at timestamptz NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX rate_slots_ends_at ON vatproof.rate_slots (ends_at);
