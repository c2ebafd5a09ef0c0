-- Functions that schedule the attempts of tasks. They update only the columns of vatproof.tasks that are not derived from the log. Any number of
-- replicas may call them concurrently.

-- Returns the time before which an outage makes no further attempt at a task due early. The time after the last attempt grows to 5 minutes with the
-- number of attempts, so that a VAT ID for which a working register never answers is not tried every few seconds.
CREATE OR REPLACE FUNCTION vatproof.early_retry(p_attempted_at timestamptz, p_attempts int) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$
  SELECT p_attempted_at + least(interval '5 minutes', interval '30 microseconds' * (p_attempts::float8 ^ 3))
$$;

-- Locks and returns a due task of an account in a member state; null if no task is due. Skips tasks that wait for quota. Single validations come
-- first. Then come the tasks of up to 20 batches, starting at a random batch. If p_before is not null, a task that waits for the end of an outage is
-- due early, if its last attempt was before p_before and early_retry allows it. Only claim_tasks calls this function.
CREATE OR REPLACE FUNCTION vatproof.due_task(p_member_state text, p_account uuid, p_moment timestamptz, p_before timestamptz) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
  max_batches CONSTANT int := 20;
  -- The longest delay of a task after an outage (retryDelay in src/domain/validation/ValidationTask.ts). A task with a longer delay does not wait for
  -- the register of a member state: every source rejected its question, or it waits for the next daily budget or the end of the nightly pause of the
  -- BZSt.
  max_outage_wait CONSTANT interval := '36 minutes';
  batches uuid[] := '{}';
  batch uuid := '00000000-0000-0000-0000-000000000000';
  first int;
  candidate uuid;
BEGIN
  FOR i IN 0 .. max_batches LOOP
    IF i = 1 THEN
      WHILE cardinality(batches) < max_batches LOOP
        SELECT coalesce(n.batch_id, '00000000-0000-0000-0000-000000000000'::uuid) INTO batch FROM tasks n
          WHERE n.member_state = p_member_state AND n.account_id = p_account AND n.closed_by IS NULL AND n.failure IS DISTINCT FROM 'QUOTA'
            AND coalesce(n.batch_id, '00000000-0000-0000-0000-000000000000'::uuid) > batch
          ORDER BY coalesce(n.batch_id, '00000000-0000-0000-0000-000000000000'::uuid) LIMIT 1;
        EXIT WHEN NOT FOUND;
        batches := batches || batch;
      END LOOP;
      first := floor(random() * cardinality(batches));
    END IF;
    EXIT WHEN i > cardinality(batches);
    IF i > 0 THEN batch := batches[1 + (first + i) % cardinality(batches)]; END IF;
    IF p_before IS NOT NULL THEN
      SELECT d.task_id INTO candidate FROM tasks d
        WHERE d.member_state = p_member_state AND d.account_id = p_account AND d.closed_by IS NULL AND d.failure IS DISTINCT FROM 'QUOTA'
          AND coalesce(d.batch_id, '00000000-0000-0000-0000-000000000000'::uuid) = batch
          AND d.due_at <= p_moment + max_outage_wait AND (d.due_at <= p_moment OR d.claim IS NULL AND d.failure IS NOT NULL
            AND d.attempted_at < p_before AND early_retry(d.attempted_at, d.attempts) <= p_moment)
        ORDER BY d.due_at LIMIT 1 FOR UPDATE SKIP LOCKED;
    ELSE
      SELECT d.task_id INTO candidate FROM tasks d
        WHERE d.member_state = p_member_state AND d.account_id = p_account AND d.closed_by IS NULL AND d.failure IS DISTINCT FROM 'QUOTA'
          AND coalesce(d.batch_id, '00000000-0000-0000-0000-000000000000'::uuid) = batch AND d.due_at <= p_moment
        ORDER BY d.due_at LIMIT 1 FOR UPDATE SKIP LOCKED;
    END IF;
    EXIT WHEN FOUND;
  END LOOP;
  RETURN candidate;
END $$;

-- Returns the outage of a member state's register that lasts or has just ended; no row if there is none. The comment of claim_tasks describes it. A
-- row that ends too late was stored before the clock was set back, and is ignored.
CREATE OR REPLACE FUNCTION vatproof.outage_of(p_member_state text, OUT began timestamptz, OUT failed timestamptz, OUT ended timestamptz, OUT next_probe timestamptz)
RETURNS SETOF record LANGUAGE sql STABLE AS $$
  SELECT r.taken_at[1], r.taken_at[2], r.taken_at[3], r.ends_at FROM vatproof.rate_slots r WHERE r.bucket = 'register/' || p_member_state
    AND r.ends_at BETWEEN clock_timestamp() - interval '1 minute' AND clock_timestamp() + interval '11 minutes'
$$;

-- Claims up to 100 expired tasks. Also claims up to p_places due tasks of each member state in p_states. The accounts with tasks in a member state
-- take turns, starting at a random account. is_cancelled is true if the batch of the task was cancelled, and null for a single validation.
-- accepted is the data of the event that accepted a single validation, and null for an item of a batch.
--
-- An attempt without an answer begins an outage of the member state's register: the row register/<member state> of rate_slots. While it lasts, all
-- replicas together claim one task at a time, the probe, when the row ends. taken_at has the time at which the outage began, the time of its last
-- failure and, after its end, the time of the answer that ended it. p_answer_ms is the age of the newest answer that the replica got from the register,
-- or null: an answer after the last failure ends the outage. For ten minutes, every replica then claims the tasks that waited for this before they are
-- due. An outage of less than 5 s makes no task due early, because then the register probably answers all but some questions. An outage is forgotten if
-- no task has probed the register for a minute.
CREATE OR REPLACE FUNCTION vatproof.claim_tasks(p_log smallint, p_claim uuid, p_lease_ms bigint, p_states text[], p_places int[], p_answer_ms bigint[])
RETURNS TABLE (task_id uuid, "position" bigint, account_id uuid, key_id uuid, batch_id uuid, vat_id text, member_state text, attempts int, is_expired boolean, is_cancelled boolean, is_probe boolean, accepted text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  max_probes CONSTANT int := 100;
  moment CONSTANT timestamptz := clock_timestamp();
  lease_end CONSTANT timestamptz := moment + p_lease_ms * interval '1 millisecond';
  -- Longer than a look-up of the sources takes.
  probe_lease CONSTANT interval := '40 seconds';
  wake_for CONSTANT interval := '10 minutes';
  has_outages CONSTANT boolean := EXISTS (SELECT FROM rate_slots WHERE bucket >= 'register/' AND bucket < 'register0');
  outage record;
  is_down boolean;
  tried_before timestamptz;
  places int;
  account uuid;
  start uuid;
  found_in_round int;
  is_second_half boolean;
  candidate uuid;
BEGIN
  -- Updates row by row, because for a list of ids the planner might scan the whole table.
  FOR candidate IN
    SELECT e.task_id FROM tasks e WHERE e.closed_by IS NULL AND e.expires_at <= moment AND (e.claim IS NULL OR e.due_at <= moment)
    ORDER BY e.expires_at LIMIT 100 FOR UPDATE SKIP LOCKED
  LOOP
    UPDATE tasks AS t SET claim = p_claim, due_at = lease_end
      WHERE t.log_id = p_log AND t.task_id = candidate
      RETURNING t.task_id, t.position, t.account_id, t.key_id, t.batch_id, t.vat_id, t.member_state, t.attempts, true,
        (SELECT b.cancelled_by IS NOT NULL FROM batches b WHERE b.batch_id = t.batch_id),
        CASE WHEN t.batch_id IS NULL THEN (SELECT e.data FROM events e WHERE e.log_id = p_log AND e.position = t.position) END
      INTO task_id, position, account_id, key_id, batch_id, vat_id, member_state, attempts, is_expired, is_cancelled, accepted;
    is_probe := false;
    RETURN NEXT;
  END LOOP;

  FOR s IN 1 .. cardinality(p_states) LOOP
    places := p_places[s];
    is_down := false;
    tried_before := NULL;
    IF has_outages THEN
      SELECT * INTO outage FROM outage_of(p_states[s]);
      is_down := outage.began IS NOT NULL AND outage.ended IS NULL;
      IF is_down AND moment - p_answer_ms[s] * interval '1 millisecond' > outage.failed THEN
        outage.ended := moment - p_answer_ms[s] * interval '1 millisecond';
        -- SKIP LOCKED prevents a deadlock with defer_task. If the row is locked, the next claim ends the outage.
        UPDATE rate_slots SET taken_at = taken_at || outage.ended, ends_at = moment + wake_for WHERE bucket = (SELECT r.bucket FROM rate_slots r
          WHERE r.bucket = 'register/' || p_states[s] AND cardinality(r.taken_at) = 2 FOR UPDATE SKIP LOCKED);
        is_down := NOT FOUND;
      END IF;
      IF is_down THEN
        PERFORM FROM rate_slots r WHERE r.bucket = 'register/' || p_states[s] AND r.ends_at <= moment FOR UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;
        places := 1;
        tried_before := moment;
      ELSIF outage.ended >= outage.began + interval '5 seconds' THEN
        tried_before := outage.ended;
      END IF;
    END IF;
    WHILE places > 0 LOOP
      -- One round claims at most one task per account. It starts at a random account id: first come the accounts with greater ids, then the accounts
      -- with smaller ids.
      start := gen_random_uuid();
      account := start;
      is_second_half := false;
      found_in_round := 0;
      FOR probe IN 1 .. max_probes LOOP
        SELECT n.account_id INTO account FROM tasks n
          WHERE n.member_state = p_states[s] AND n.closed_by IS NULL AND n.failure IS DISTINCT FROM 'QUOTA' AND n.account_id > account
          ORDER BY n.account_id LIMIT 1;
        IF NOT FOUND OR is_second_half AND account > start THEN
          EXIT WHEN is_second_half;
          is_second_half := true;
          account := '00000000-0000-0000-0000-000000000000';
          CONTINUE;
        END IF;
        candidate := due_task(p_states[s], account, moment, tried_before);
        CONTINUE WHEN candidate IS NULL;
        UPDATE tasks AS t SET claim = p_claim, due_at = lease_end, attempts = t.attempts + 1, attempted_at = moment
          WHERE t.log_id = p_log AND t.task_id = candidate
          RETURNING t.task_id, t.position, t.account_id, t.key_id, t.batch_id, t.vat_id, t.member_state, t.attempts, false,
            (SELECT b.cancelled_by IS NOT NULL FROM batches b WHERE b.batch_id = t.batch_id),
        CASE WHEN t.batch_id IS NULL THEN (SELECT e.data FROM events e WHERE e.log_id = p_log AND e.position = t.position) END
          INTO task_id, position, account_id, key_id, batch_id, vat_id, member_state, attempts, is_expired, is_cancelled, accepted;
        is_probe := is_down;
        RETURN NEXT;
        places := places - 1;
        found_in_round := found_in_round + 1;
        EXIT WHEN places = 0;
      END LOOP;
      EXIT WHEN found_in_round = 0;
    END LOOP;
    IF is_down AND places = 0 THEN
      UPDATE rate_slots SET ends_at = moment + probe_lease WHERE bucket = 'register/' || p_states[s];
    END IF;
  END LOOP;
END $$;

-- Extends the lease of each task in p_tasks, if the attempt at the same index in p_claims still holds the lease.
CREATE OR REPLACE FUNCTION vatproof.keep_tasks(p_log smallint, p_tasks uuid[], p_claims uuid[], p_lease_ms bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off
AS $$
BEGIN
  FOR i IN 1 .. cardinality(p_tasks) LOOP
    -- SKIP LOCKED prevents a deadlock with an append that closes tasks.
    PERFORM FROM tasks f WHERE f.log_id = p_log AND f.task_id = p_tasks[i] AND f.claim = p_claims[i] FOR UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND;
    UPDATE tasks t SET due_at = clock_timestamp() + p_lease_ms * interval '1 millisecond'
      WHERE t.log_id = p_log AND t.task_id = p_tasks[i];
  END LOOP;
END $$;

-- Releases a task after an attempt without an answer. The next attempt is due after p_wait_ms. Leaves the task alone if another attempt has claimed it.
-- If p_failure is QUOTA, the function also pauses up to 1,000 further items of the same batch and member state, because their attempts would fail for
-- the same reason. With p_is_outage, the register of the member state did not answer: the function begins or continues its outage (claim_tasks). The next
-- probe follows after 5 s in the first 15 s of the outage, after 10 s in the first ten minutes, then after a fortieth of the outage's length, up
-- to 5 minutes. An attempt that says nothing about the register frees the place of the probe.
CREATE OR REPLACE FUNCTION vatproof.defer_task(p_log smallint, p_task uuid, p_claim uuid, p_wait_ms bigint, p_failure text, p_is_outage boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
AS $$
DECLARE
  max_paused CONSTANT int := 1000;
  moment CONSTANT timestamptz := clock_timestamp();
  began timestamptz := moment;
  released record;
  sibling uuid;
BEGIN
  UPDATE tasks t SET claim = NULL, failure = coalesce(p_failure, t.failure),
    due_at = moment + p_wait_ms * interval '1 millisecond'
    WHERE t.log_id = p_log AND t.task_id = p_task AND t.claim = p_claim
    RETURNING t.member_state, t.account_id, t.batch_id, t.due_at INTO released;
  IF NOT FOUND THEN
    SELECT t.member_state, t.account_id, NULL::uuid AS batch_id, t.due_at INTO released FROM tasks t WHERE t.log_id = p_log AND t.task_id = p_task;
  END IF;
  IF p_is_outage AND released.member_state IS NOT NULL THEN
    SELECT coalesce(min(o.began), moment) INTO began FROM outage_of(released.member_state) o WHERE o.ended IS NULL;
    INSERT INTO rate_slots AS r (bucket, taken_at, ends_at) VALUES ('register/' || released.member_state, ARRAY[began, moment],
        moment + CASE WHEN moment < began + interval '15 seconds' THEN interval '5 seconds'
          WHEN moment < began + interval '10 minutes' THEN interval '10 seconds'
          ELSE least(interval '5 minutes', (moment - began) / 40) END)
      ON CONFLICT (bucket) DO UPDATE SET taken_at = excluded.taken_at, ends_at = excluded.ends_at;
  ELSE
    UPDATE rate_slots SET ends_at = moment WHERE bucket = 'register/' || released.member_state AND cardinality(taken_at) = 2 AND ends_at > moment;
  END IF;
  IF p_failure = 'QUOTA' AND released.batch_id IS NOT NULL THEN
    -- SKIP LOCKED prevents a deadlock with an append that closes tasks.
    FOR sibling IN SELECT d.task_id FROM tasks d
      WHERE d.member_state = released.member_state AND d.account_id = released.account_id AND d.closed_by IS NULL AND d.failure IS DISTINCT FROM 'QUOTA'
        AND coalesce(d.batch_id, '00000000-0000-0000-0000-000000000000'::uuid) = released.batch_id AND d.claim IS NULL
      ORDER BY d.due_at LIMIT max_paused FOR UPDATE SKIP LOCKED
    LOOP
      UPDATE tasks t SET failure = 'QUOTA', due_at = released.due_at WHERE t.log_id = p_log AND t.task_id = sibling;
    END LOOP;
  END IF;
END $$;

-- Calls defer_task for each task in p_tasks, which are in the order of their member states. The other arrays have one element per task. SKIP LOCKED
-- prevents a deadlock with an append that closes tasks. A task that is locked is being closed, or its lease has expired and another replica claims it.
CREATE OR REPLACE FUNCTION vatproof.defer_tasks(p_log smallint, p_tasks uuid[], p_claims uuid[], p_wait_ms bigint[], p_failures text[], p_outages boolean[])
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off
AS $$
BEGIN
  FOR i IN 1 .. cardinality(p_tasks) LOOP
    PERFORM FROM tasks f WHERE f.log_id = p_log AND f.task_id = p_tasks[i] FOR UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND;
    PERFORM defer_task(p_log, p_tasks[i], p_claims[i], p_wait_ms[i], p_failures[i], p_outages[i]);
  END LOOP;
END $$;

-- Makes the items p_first to p_first + p_count - 1 of a batch due after p_wait_ms, except closed items and items that were attempted already. Without
-- this call, the items become due 30 s after they were appended. BatchOpening calls the function after it has recorded the cached answers. p_failure
-- is the reason for the wait, or null.
CREATE OR REPLACE FUNCTION vatproof.release_items(p_batch uuid, p_first int, p_count int, p_wait_ms bigint, p_failure text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
AS $$
DECLARE open record;
BEGIN
  -- Updates row by row in the order of the items, because for a single UPDATE the planner might choose another index.
  -- SKIP LOCKED prevents a deadlock with an append that closes tasks.
  FOR open IN SELECT o.log_id, o.task_id FROM tasks o WHERE o.batch_id = p_batch AND o.item >= p_first AND o.item < p_first + p_count AND o.closed_by IS NULL
    ORDER BY o.item LIMIT p_count FOR UPDATE SKIP LOCKED
  LOOP
    UPDATE tasks t SET failure = p_failure, due_at = least(t.expires_at, clock_timestamp() + p_wait_ms * interval '1 millisecond')
      WHERE t.log_id = open.log_id AND t.task_id = open.task_id AND t.claim IS NULL AND t.attempts = 0;
  END LOOP;
END $$;

-- Makes tasks that wait for quota due if their API key has quota again: after a change of the plan, or in a new month. Also makes the tasks of a
-- revoked key due, so that the task engine cancels them. One call reads up to 1,000 keys that follow the key p_after in the order of ids. It makes up
-- to 1,000 tasks due, and at most as many tasks of a key as the key has quota left. Returns the key after which the next call continues (null after
-- the last key), and the number of tasks that are now due. p_meter is the template of a meter's name, as in find_callers. p_limits has the
-- validations per month of the plans in p_plans.
CREATE OR REPLACE FUNCTION vatproof.resume_tasks(p_log smallint, p_after uuid, p_meter text, p_plans text[], p_limits bigint[])
RETURNS TABLE (last_key uuid, resumed int) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
AS $$
DECLARE
  max_keys CONSTANT int := 1000;
  max_tasks CONSTANT int := 1000;
  quota bigint;
  paused uuid;
BEGIN
  last_key := p_after;
  resumed := 0;
  FOR i IN 1 .. max_keys LOOP
    SELECT n.key_id INTO last_key FROM tasks n WHERE n.closed_by IS NULL AND n.failure = 'QUOTA' AND n.key_id > last_key ORDER BY n.key_id LIMIT 1;
    EXIT WHEN NOT FOUND;
    SELECT CASE WHEN k.revoked_at IS NOT NULL THEN max_tasks ELSE coalesce(a.per_month, p_limits[array_position(p_plans, a.plan)])
        - coalesce((SELECT m.used FROM meters m WHERE m.log_id = p_log AND m.meter_id = replace(p_meter, '{key}', last_key::text)), 0) END INTO quota
      FROM (SELECT f.account_id, f.revoked_at FROM api_keys f WHERE f.key_id = last_key LIMIT 1) AS k
      CROSS JOIN LATERAL (SELECT f.plan, f.per_month FROM accounts f WHERE f.account_id = k.account_id LIMIT 1) AS a;
    CONTINUE WHEN quota IS NULL OR quota <= 0;
    -- SKIP LOCKED prevents a deadlock with an append that closes tasks.
    FOR paused IN SELECT d.task_id FROM tasks d WHERE d.key_id = last_key AND d.closed_by IS NULL AND d.failure = 'QUOTA' AND d.claim IS NULL
      ORDER BY d.due_at LIMIT least(quota, max_tasks - resumed) FOR UPDATE SKIP LOCKED
    LOOP
      UPDATE tasks t SET failure = NULL, due_at = clock_timestamp() WHERE t.log_id = p_log AND t.task_id = paused;
      resumed := resumed + 1;
    END LOOP;
    EXIT WHEN resumed = max_tasks;
  END LOOP;
  RETURN NEXT;
END $$;

-- Returns the earliest time of the next attempt at an open task: due_at, unless the register of its member state is down (claim_tasks).
CREATE OR REPLACE FUNCTION vatproof.next_attempt(p_member_state text, p_claim uuid, p_due_at timestamptz, p_attempted_at timestamptz, p_attempts int)
RETURNS timestamptz LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off
AS $$
DECLARE next_probe timestamptz;
BEGIN
  IF p_claim IS NOT NULL THEN RETURN p_due_at; END IF;
  SELECT o.next_probe INTO next_probe FROM outage_of(p_member_state) o WHERE o.ended IS NULL;
  RETURN CASE WHEN next_probe IS NULL THEN p_due_at ELSE greatest(next_probe, least(p_due_at, early_retry(p_attempted_at, p_attempts))) END;
END $$;

-- Returns tasks by id. Omits unknown ids and items of batches. LIMIT 1 forces a nested loop over the ids.
CREATE OR REPLACE FUNCTION vatproof.find_tasks(p_log smallint, p_tasks uuid[])
RETURNS TABLE (task_id uuid, "position" bigint, key_id uuid, vat_id text, accepted_at timestamptz, expires_at timestamptz, state text, closed_by bigint,
  next_attempt_at timestamptz, attempts int, failure text) LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
AS $$
BEGIN
  RETURN QUERY SELECT t.task_id, t.position, t.key_id, t.vat_id, t.accepted_at, t.expires_at, t.state, t.closed_by,
      next_attempt(t.member_state, t.claim, t.due_at, t.attempted_at, t.attempts), t.attempts, t.failure
    FROM unnest(p_tasks) AS u(task_id)
    CROSS JOIN LATERAL (SELECT f.* FROM tasks f WHERE f.log_id = p_log AND f.task_id = u.task_id LIMIT 1) AS t
    WHERE t.batch_id IS NULL;
END $$;
