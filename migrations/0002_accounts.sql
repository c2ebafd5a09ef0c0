-- Accounts and API keys: projections of the streams account-<id>, kept in the transaction that appends their events, because
-- decisions read them. Contact data is no event: it lives in a table of its own, where it can be erased.

CREATE TABLE vatproof.accounts (
  account_id uuid PRIMARY KEY,
  plan text NOT NULL CHECK (plan IN ('free', 'starter', 'business', 'enterprise')),
  per_month bigint CHECK (per_month > 0),
  verified_at timestamptz,
  created_at timestamptz NOT NULL
);
COMMENT ON COLUMN vatproof.accounts.per_month IS 'Validations per month set for this account alone; null means the plan''s.';

CREATE TABLE vatproof.api_keys (
  key_id uuid PRIMARY KEY,
  account_id uuid NOT NULL REFERENCES vatproof.accounts,
  key_sha256 bytea NOT NULL UNIQUE CHECK (octet_length(key_sha256) = 32),
  prefix text COLLATE "C" NOT NULL,
  issued_at timestamptz NOT NULL,
  revoked_at timestamptz,
  UNIQUE (account_id, prefix)
);
COMMENT ON COLUMN vatproof.api_keys.key_sha256 IS 'SHA-256 of the key. The key itself is stored nowhere.';

-- Replicas remember callers. Whatever revokes a key or changes a plan moves the epoch with it, so that the next append tells them.
CREATE FUNCTION vatproof.move_identity_epoch() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = vatproof, pg_temp AS $$
BEGIN
  UPDATE logs SET identity_epoch = identity_epoch + 1;
  RETURN NULL;
END $$;
CREATE TRIGGER identity_epoch AFTER UPDATE OF plan, per_month OR DELETE ON vatproof.accounts
  FOR EACH STATEMENT EXECUTE FUNCTION vatproof.move_identity_epoch();
CREATE TRIGGER identity_epoch AFTER UPDATE OF revoked_at OR DELETE ON vatproof.api_keys
  FOR EACH STATEMENT EXECUTE FUNCTION vatproof.move_identity_epoch();

CREATE TABLE vatproof.contacts (
  account_id uuid PRIMARY KEY REFERENCES vatproof.accounts,
  email text,
  email_key text COLLATE "C" UNIQUE,
  password_hash text,
  agent_id text
);
COMMENT ON TABLE vatproof.contacts IS 'Personal data of accounts, apart from the log so that it can be erased.';
COMMENT ON COLUMN vatproof.contacts.email_key IS 'The address in lower case: addresses are compared without regard to case.';

-- Takes one place in each bucket and says how many are taken with it. A window starts with its first call.
CREATE FUNCTION vatproof.take(p_bucket text[], p_window_ms bigint[])
RETURNS TABLE (ord bigint, taken bigint, ends_in_ms bigint) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE moment timestamptz := clock_timestamp();
BEGIN
  -- Losing the last counts in a crash costs nobody anything, waiting for the disk does.
  PERFORM set_config('synchronous_commit', 'off', true);
  RETURN QUERY
  WITH asked AS MATERIALIZED (
    SELECT u.* FROM unnest(p_bucket, p_window_ms) WITH ORDINALITY AS u(bucket, window_ms, ord)),
  summed AS MATERIALIZED (
    SELECT bucket, max(window_ms) AS window_ms, count(*) AS calls FROM asked GROUP BY bucket),
  counted AS (
    INSERT INTO rate_windows AS w (bucket, taken, ends_at)
    SELECT bucket, calls, moment + window_ms * interval '1 millisecond' FROM summed ORDER BY bucket
    ON CONFLICT (bucket) DO UPDATE SET
      taken = CASE WHEN w.ends_at <= moment THEN excluded.taken ELSE w.taken + excluded.taken END,
      ends_at = CASE WHEN w.ends_at <= moment THEN excluded.ends_at ELSE w.ends_at END
    RETURNING bucket, taken, ends_at)
  SELECT a.ord, c.taken - s.calls + row_number() OVER (PARTITION BY a.bucket ORDER BY a.ord),
    ceil(extract(epoch FROM c.ends_at - moment) * 1000)::bigint
  FROM asked a JOIN summed s ON s.bucket = a.bucket JOIN counted c ON c.bucket = a.bucket;
END $$;

-- Rolling windows for small limits: each place taken in the window that ends now is remembered.
CREATE TABLE vatproof.rate_places (
  bucket text COLLATE "C" PRIMARY KEY,
  taken_at timestamptz[] NOT NULL,
  ends_at timestamptz NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX rate_places_ends_at ON vatproof.rate_places (ends_at);

-- Takes one of p_limit places in the p_window_ms before now, or says when the next one is free.
CREATE FUNCTION vatproof.take_place(p_bucket text, p_limit int, p_window_ms bigint)
RETURNS TABLE (granted boolean, free_in_ms bigint) LANGUAGE plpgsql SECURITY DEFINER SET search_path = vatproof, pg_temp AS $$
#variable_conflict use_column
DECLARE
  window_length CONSTANT interval := p_window_ms * interval '1 millisecond';
  moment timestamptz;
  places timestamptz[];
BEGIN
  INSERT INTO rate_places (bucket, taken_at, ends_at) VALUES (p_bucket, '{}', clock_timestamp() + window_length) ON CONFLICT DO NOTHING;
  SELECT taken_at INTO places FROM rate_places WHERE bucket = p_bucket FOR UPDATE;
  moment := clock_timestamp();
  SELECT coalesce(array_agg(place ORDER BY place), '{}') INTO places FROM unnest(places) AS place WHERE place > moment - window_length;
  IF cardinality(places) >= p_limit THEN
    RETURN QUERY SELECT false, CASE WHEN p_limit <= 0 THEN p_window_ms
      ELSE ceil(extract(epoch FROM places[cardinality(places) - p_limit + 1] + window_length - moment) * 1000)::bigint END;
  ELSE
    UPDATE rate_places SET taken_at = places || moment, ends_at = moment + window_length WHERE bucket = p_bucket;
    RETURN QUERY SELECT true, 0::bigint;
  END IF;
END $$;

-- The key of keyed hashes (client addresses, cursors), made once by the database itself. Without it no hash leads back to an address.
CREATE TABLE vatproof.hash_key (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  key bytea NOT NULL CHECK (octet_length(key) = 32)
);
INSERT INTO vatproof.hash_key (key) VALUES (sha256(gen_random_uuid()::text::bytea || gen_random_uuid()::text::bytea || gen_random_uuid()::text::bytea));
