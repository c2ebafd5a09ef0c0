-- Creates missing partitions of vatproof.events, up to two partitions ahead of the current one, so that an append always finds its partition. Returns
-- the number of created partitions. A partition has 2^26 positions. The creation of a partition needs a lock on the whole table. While it waits for
-- this lock, all later queries of the table wait as well. The short lock_timeout therefore prevents a long read, such as a dump or an audit, from
-- blocking appends. After a lock timeout, housekeeping retries in the next minute.
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
    -- A unique index of a partitioned table must contain the partition key, here position. Such an index would not make these columns unique without
    -- position. Therefore each partition has unique indexes of its own.
    EXECUTE format('CREATE UNIQUE INDEX ON vatproof.%I (log_id, stream_id, version)', name);
    EXECUTE format('CREATE UNIQUE INDEX ON vatproof.%I (log_id, event_id)', name);
    -- The parent's TRUNCATE trigger does not fire if a partition is truncated by its own name.
    EXECUTE format('CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON vatproof.%I FOR EACH STATEMENT EXECUTE FUNCTION vatproof.refuse_change()', name);
    EXECUTE format('ALTER TABLE vatproof.%I ENABLE ALWAYS TRIGGER append_only, ENABLE ALWAYS TRIGGER append_only_truncate', name);
    made := made + 1;
  END LOOP;
  RETURN made;
END $$;
