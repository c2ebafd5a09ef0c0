-- Housekeeping must not stand in anybody's way.

-- A new partition needs the whole log for a moment. Whoever waits for that keeps all others waiting behind: beside somebody who reads the log
-- for long (a dump, an audit) appends stood still for as long as housekeeping waited. There is time, since two partitions are made ahead:
-- it gives up at once, and comes again in a minute.
ALTER FUNCTION vatproof.ensure_partitions(smallint) SET lock_timeout = '200ms';

-- Removes up to p_max windows and p_max places that are over, and says how many of those of which there were more. Callers lock several of
-- them in the order of their names, and this meets them in any order, so it waits for none: a row that somebody has goes the next time.
CREATE FUNCTION vatproof.sweep_limits(p_max int) RETURNS int LANGUAGE plpgsql SECURITY DEFINER SET search_path = vatproof, pg_temp AS $$
DECLARE
  over CONSTANT timestamptz := clock_timestamp() - interval '1 minute';
  windows int;
  places int;
BEGIN
  DELETE FROM rate_windows WHERE bucket IN (
    SELECT bucket FROM rate_windows WHERE ends_at < over ORDER BY ends_at LIMIT p_max FOR UPDATE SKIP LOCKED);
  GET DIAGNOSTICS windows = ROW_COUNT;
  DELETE FROM rate_places WHERE bucket IN (
    SELECT bucket FROM rate_places WHERE ends_at < over ORDER BY ends_at LIMIT p_max FOR UPDATE SKIP LOCKED);
  GET DIAGNOSTICS places = ROW_COUNT;
  RETURN greatest(windows, places);
END $$;
REVOKE ALL ON FUNCTION vatproof.sweep_limits FROM PUBLIC;

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'vatproof_service') THEN
    GRANT EXECUTE ON FUNCTION vatproof.sweep_limits TO vatproof_service;
  END IF;
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'vatproof_owner') AND pg_has_role(current_user, 'vatproof_owner', 'MEMBER') THEN
    BEGIN
      ALTER FUNCTION vatproof.sweep_limits OWNER TO vatproof_owner;
    EXCEPTION WHEN insufficient_privilege THEN NULL;  -- everything belongs to the migrating role then
    END;
  END IF;
END $$;
