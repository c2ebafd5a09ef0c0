-- Rate limits, shared by all replicas. They are not events: a crash may lose the last counts.
--
-- If the clock of the database is set back, for example by a failover, older rows end too late and would block calls. Therefore the functions
-- ignore a row that ends more than a minute after the end of a row that begins now. The minute is a tolerance for concurrent sessions, which read
-- the clock a moment earlier or later.

-- Rate windows with a fixed length: the number of calls in each. The leases of acquire_leases and the daily budgets of spend_budget are also rows
-- of this table. Only a lease has a holder.
CREATE TABLE vatproof.rate_windows (
  bucket text COLLATE "C" PRIMARY KEY,
  taken bigint NOT NULL,
  ends_at timestamptz NOT NULL,
  holder uuid
) WITH (fillfactor = 50);
CREATE INDEX rate_windows_ends_at ON vatproof.rate_windows (ends_at);

-- Sliding windows, for small limits: the times at which the slots of each bucket were acquired. The outages of registers are also rows of this table
-- (vatproof.claim_tasks).
CREATE TABLE vatproof.rate_slots (
  bucket text COLLATE "C" PRIMARY KEY,
  taken_at timestamptz[] NOT NULL,
  ends_at timestamptz NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX rate_slots_ends_at ON vatproof.rate_slots (ends_at);
