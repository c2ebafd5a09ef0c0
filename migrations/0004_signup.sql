-- Signup and login: what is no fact (contact data can be erased, so what hangs on it goes with it), and limits on attempts.

CREATE TABLE vatproof.verification_tokens (
  token_sha256 bytea PRIMARY KEY CHECK (octet_length(token_sha256) = 32),
  account_id uuid NOT NULL REFERENCES vatproof.contacts ON DELETE CASCADE,
  issued_at timestamptz NOT NULL
);
CREATE INDEX verification_tokens_account_id ON vatproof.verification_tokens (account_id);
CREATE INDEX verification_tokens_issued_at ON vatproof.verification_tokens (issued_at);
COMMENT ON TABLE vatproof.verification_tokens IS 'Tokens of mails that confirm an address, only their SHA-256. A used one is deleted.';

CREATE TABLE vatproof.api_key_labels (
  key_id uuid PRIMARY KEY REFERENCES vatproof.api_keys,
  account_id uuid NOT NULL REFERENCES vatproof.contacts ON DELETE CASCADE,
  label text NOT NULL
);
CREATE INDEX api_key_labels_account_id ON vatproof.api_key_labels (account_id);
COMMENT ON TABLE vatproof.api_key_labels IS 'What people call their keys. It may name a person, so it is kept where it can be erased.';

-- Takes one of p_limit places in the p_window_ms before now in each bucket, or none at all and says when all of them have one free.
-- With p_look the places are only looked at.
CREATE FUNCTION vatproof.take_places(p_bucket text[], p_limit int, p_window_ms bigint, p_look boolean)
RETURNS TABLE (granted boolean, free_in_ms bigint) LANGUAGE plpgsql SECURITY DEFINER SET search_path = vatproof, pg_temp AS $$
#variable_conflict use_column
DECLARE
  window_length CONSTANT interval := p_window_ms * interval '1 millisecond';
  moment timestamptz := clock_timestamp();
  wait_ms bigint;
BEGIN
  IF NOT p_look THEN
    -- Locks the rows to the commit, and keeps them from being swept away. In one order everywhere, so that two calls on the same
    -- buckets never wait for each other in a circle. What they contain is read by the next statement, which sees what this one waited for.
    INSERT INTO rate_places AS r (bucket, taken_at, ends_at)
      SELECT DISTINCT wanted, '{}'::timestamptz[], moment + window_length FROM unnest(p_bucket) AS wanted ORDER BY wanted
      ON CONFLICT (bucket) DO UPDATE SET ends_at = greatest(r.ends_at, excluded.ends_at);
    moment := clock_timestamp();
  END IF;
  SELECT max(CASE WHEN p_limit <= 0 THEN p_window_ms
      ELSE ceil(extract(epoch FROM recent.places[cardinality(recent.places) - p_limit + 1] + window_length - moment) * 1000)::bigint END)
    INTO wait_ms
    FROM rate_places r
    CROSS JOIN LATERAL (SELECT coalesce(array_agg(place ORDER BY place), '{}') AS places
      FROM unnest(r.taken_at) AS place WHERE place > moment - window_length) AS recent
    WHERE r.bucket = ANY (p_bucket) AND cardinality(recent.places) >= p_limit;
  IF wait_ms IS NOT NULL THEN
    RETURN QUERY SELECT false, wait_ms;
    RETURN;
  END IF;
  IF NOT p_look THEN
    UPDATE rate_places r SET ends_at = moment + window_length,
      taken_at = ARRAY(SELECT place FROM unnest(r.taken_at) AS place WHERE place > moment - window_length ORDER BY place) || moment
      WHERE r.bucket = ANY (p_bucket);
  END IF;
  RETURN QUERY SELECT true, 0::bigint;
END $$;
REVOKE ALL ON FUNCTION vatproof.take_places FROM PUBLIC;

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'vatproof_service') THEN
    GRANT SELECT, INSERT, DELETE ON vatproof.verification_tokens TO vatproof_service;
    GRANT SELECT, INSERT ON vatproof.api_key_labels TO vatproof_service;
    GRANT EXECUTE ON FUNCTION vatproof.take_places TO vatproof_service;
  END IF;
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'vatproof_owner') AND pg_has_role(current_user, 'vatproof_owner', 'MEMBER') THEN
    ALTER TABLE vatproof.verification_tokens OWNER TO vatproof_owner;
    ALTER TABLE vatproof.api_key_labels OWNER TO vatproof_owner;
    ALTER FUNCTION vatproof.take_places OWNER TO vatproof_owner;
  END IF;
EXCEPTION WHEN insufficient_privilege THEN
  RAISE NOTICE 'vatproof_owner cannot own these tables here: %', SQLERRM;
END $$;
