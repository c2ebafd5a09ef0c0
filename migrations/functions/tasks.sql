-- The scheduling of accepted validations: the columns of vatproof.tasks that are no facts of the log. Any number of workers may call these.

-- Claims tasks: up to 100 that have expired, and of each member state in p_states up to p_places due ones. The accounts of a member state take
-- turns, beginning at a random one. p_wake_ms: the register may answer again, so
-- tasks that wait for a source are due as well if their last attempt is older than this.
CREATE OR REPLACE FUNCTION vatproof.claim_tasks(p_log smallint, p_claim uuid, p_lease_ms bigint, p_states text[], p_places int[], p_wake_ms bigint[])
RETURNS TABLE (task_id uuid, "position" bigint, member_state text, attempts int, is_expired boolean)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  max_probes CONSTANT int := 100;
  moment CONSTANT timestamptz := clock_timestamp();
  lease_end CONSTANT timestamptz := moment + p_lease_ms * interval '1 millisecond';
  places int;
  account uuid;
  start uuid;
  found_in_round int;
  is_second_half boolean;
  candidate uuid;
BEGIN
  -- One by one: for a list of ids the planner may read the whole table.
  FOR candidate IN
    SELECT e.task_id FROM tasks e WHERE e.closed_by IS NULL AND e.expires_at <= moment AND (e.claim IS NULL OR e.due_at <= moment)
    ORDER BY e.expires_at LIMIT 100 FOR UPDATE SKIP LOCKED
  LOOP
    UPDATE tasks AS t SET claim = p_claim, due_at = lease_end
      WHERE t.log_id = p_log AND t.task_id = candidate
      RETURNING t.task_id, t.position, t.member_state, t.attempts, true INTO task_id, position, member_state, attempts, is_expired;
    RETURN NEXT;
  END LOOP;

  FOR s IN 1 .. cardinality(p_states) LOOP
    places := p_places[s];
    WHILE places > 0 LOOP
      -- One task of each account: first of those from a random one on, then of those before it.
      start := gen_random_uuid();
      account := start;
      is_second_half := false;
      found_in_round := 0;
      FOR probe IN 1 .. max_probes LOOP
        SELECT n.account_id INTO account FROM tasks n
          WHERE n.member_state = p_states[s] AND n.closed_by IS NULL AND n.account_id > account
          ORDER BY n.account_id LIMIT 1;
        IF NOT FOUND OR is_second_half AND account > start THEN
          EXIT WHEN is_second_half;
          is_second_half := true;
          account := '00000000-0000-0000-0000-000000000000';
          CONTINUE;
        END IF;
        IF p_wake_ms[s] IS NOT NULL THEN
          SELECT d.task_id INTO candidate FROM tasks d
            WHERE d.member_state = p_states[s] AND d.account_id = account AND d.closed_by IS NULL
              AND (d.due_at <= moment OR d.claim IS NULL AND d.failure <> 'QUOTA'
                AND d.attempted_at < moment - p_wake_ms[s] * interval '1 millisecond')
            ORDER BY d.due_at LIMIT 1 FOR UPDATE SKIP LOCKED;
        ELSE
          SELECT d.task_id INTO candidate FROM tasks d
            WHERE d.member_state = p_states[s] AND d.account_id = account AND d.closed_by IS NULL AND d.due_at <= moment
            ORDER BY d.due_at LIMIT 1 FOR UPDATE SKIP LOCKED;
        END IF;
        CONTINUE WHEN NOT FOUND;
        UPDATE tasks AS t SET claim = p_claim, due_at = lease_end, attempts = t.attempts + 1, attempted_at = moment
          WHERE t.log_id = p_log AND t.task_id = candidate
          RETURNING t.task_id, t.position, t.member_state, t.attempts, false INTO task_id, position, member_state, attempts, is_expired;
        RETURN NEXT;
        places := places - 1;
        found_in_round := found_in_round + 1;
        EXIT WHEN places = 0;
      END LOOP;
      EXIT WHEN found_in_round = 0;
    END LOOP;
  END LOOP;
END $$;

-- Says that the worker of these tasks is alive.
CREATE OR REPLACE FUNCTION vatproof.keep_tasks(p_log smallint, p_tasks uuid[], p_claims uuid[], p_lease_ms bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off
AS $$
BEGIN
  FOR i IN 1 .. cardinality(p_tasks) LOOP
    UPDATE tasks t SET due_at = clock_timestamp() + p_lease_ms * interval '1 millisecond'
      WHERE t.log_id = p_log AND t.task_id = p_tasks[i] AND t.claim = p_claims[i];
  END LOOP;
END $$;

-- The attempt brought no answer: the task waits for the next one. Nothing happens if another attempt has the task by now.
CREATE OR REPLACE FUNCTION vatproof.defer_task(p_log smallint, p_task uuid, p_claim uuid, p_wait_ms bigint, p_failure text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off
AS $$
BEGIN
  UPDATE tasks t SET claim = NULL, failure = coalesce(p_failure, t.failure),
    due_at = least(t.expires_at, clock_timestamp() + p_wait_ms * interval '1 millisecond')
    WHERE t.log_id = p_log AND t.task_id = p_task AND t.claim = p_claim;
END $$;

-- Tasks by their ids; unknown ones are left out. LIMIT 1 keeps the planner from any other order.
CREATE OR REPLACE FUNCTION vatproof.find_tasks(p_log smallint, p_tasks uuid[])
RETURNS TABLE (task_id uuid, "position" bigint, key_id uuid, vat_id text, accepted_at timestamptz, expires_at timestamptz, state text, closed_by bigint,
  due_at timestamptz, attempts int, failure text) LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
AS $$
BEGIN
  RETURN QUERY SELECT t.task_id, t.position, t.key_id, t.vat_id, t.accepted_at, t.expires_at, t.state, t.closed_by, t.due_at, t.attempts, t.failure
    FROM unnest(p_tasks) AS u(task_id)
    CROSS JOIN LATERAL (SELECT f.* FROM tasks f WHERE f.log_id = p_log AND f.task_id = u.task_id LIMIT 1) AS t;
END $$;
