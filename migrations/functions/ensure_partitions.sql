-- Creates the missing partitions up to two ahead of the head and returns their number, so that an append always finds its partition.
-- Partitions hold 2^26 positions. A new partition locks the whole log for a moment, and a waiting lock blocks all later queries: the short
-- lock_timeout prevents that a long read (a dump, an audit) blocks appends. Housekeeping retries each minute.
CREATE OR REPLACE FUNCTION vatproof.ensure_partitions(p_log smallint) RETURNS int LANGUAGE plpgsql SECURITY DEFINER
SET search_path = vatproof, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
  size CONSTANT bigint := 67108864;
  made int := 0;
  n bigint;
  name text;
BEGIN
  FOR n IN SELECT generate_series(0, (SELECT next_position / size FROM logs WHERE log_id = p_log) + 2) LOOP
    name := 'events_p' || n;
    CONTINUE WHEN to_regclass('vatproof.' || name) IS NOT NULL;
    BEGIN
      EXECUTE format('CREATE TABLE vatproof.%I PARTITION OF vatproof.events FOR VALUES FROM (%s) TO (%s)', name, n * size, (n + 1) * size);
    EXCEPTION WHEN duplicate_table THEN CONTINUE;  -- another replica created it
    END;
    -- A unique index of the parent would have to contain position and could not enforce these, so each partition has its own.
    EXECUTE format('CREATE UNIQUE INDEX ON vatproof.%I (log_id, stream_id, version)', name);
    EXECUTE format('CREATE UNIQUE INDEX ON vatproof.%I (log_id, event_id)', name);
    -- The parent's TRUNCATE trigger does not fire if a partition is truncated by its own name.
    EXECUTE format('CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON vatproof.%I FOR EACH STATEMENT EXECUTE FUNCTION vatproof.refuse_change()', name);
    EXECUTE format('ALTER TABLE vatproof.%I ENABLE ALWAYS TRIGGER append_only, ENABLE ALWAYS TRIGGER append_only_truncate', name);
    made := made + 1;
  END LOOP;
  RETURN made;
END $$;
