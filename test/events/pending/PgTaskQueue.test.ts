import { DateTime, Duration, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { BatchAccepted, BatchItemsAccepted } from "#domain/pending/Batch.ts"
import { Plans, usualPlans } from "#domain/callers/PlanLimits.ts"
import { Integrity } from "#domain/log/Integrity.ts"
import { TaskQueue } from "#domain/pending/TaskQueue.ts"
import { rejectionDelay, retryDelay } from "#domain/pending/TaskDelays.ts"
import { ValidationAccepted } from "#domain/validation/ValidationTask.ts"
import type { DomainEvent } from "#domain/log/DomainEvent.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as PgTaskQueue from "#events/pending/PgTaskQueue.ts"
import * as TaskCounts from "#events/pending/TaskCounts.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import { texts } from "#test/support/Batches.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as RoundTrips from "#test/support/RoundTrips.ts"
import { assert, layer } from "#test/support/Test.ts"

const [account_id, key_id] = ["019371c0-5f00-7000-8000-0000000000ac", "019371c0-5f00-7000-8000-0000000000a1"]
const batches = ["019371c0-5f00-7000-8000-0000000000ba", "019371c0-5f00-7000-8000-0000000000bb"]
const expires_at = DateTime.makeUnsafe("2100-01-01T00:00:00Z")

const append = (...events: readonly [DomainEvent, ...ReadonlyArray<DomainEvent>]) =>
  Effect.flatMap(EventStore, (store) => store.append({ stream: `key-${key_id}`, expectedVersion: null, events, charge: null }))

const appendBatch = (batch_id: string, items: number) => {
  const facts = { batch_id, account_id, key_id, expires_at }
  const vat_ids = Array.from({ length: items }, (_, item) => `SE${556_000_000_000 + item}`)
  return append(
    BatchAccepted.make({ ...facts, items, malformed: 0, duplicates: 0, chunks: [], request_hash: null }),
    BatchItemsAccepted.make({ ...facts, first: 0, vat_ids, duplicate_of: {} })
  )
}

const closeAll = MigratedDatabase.execute("UPDATE vatproof.tasks SET closed_by = 0, state = 'cancelled' WHERE closed_by IS NULL")

/** An outage of an hour that has just ended. */
const recovered = MigratedDatabase.execute(`INSERT INTO vatproof.rate_slots (bucket, taken_at, ends_at)
  VALUES ('register/SE', ARRAY[now() - interval '1 hour', now(), now() + interval '1 second'], now() + interval '10 minutes')
  ON CONFLICT (bucket) DO UPDATE SET taken_at = excluded.taken_at, ends_at = excluded.ends_at`)

const queue = PgTaskQueue.layer.pipe(
  Layer.provideMerge(MigratedDatabase.layer),
  Layer.provide([NodeCrypto.layer, Integrity.layer, Layer.succeed(Plans, usualPlans)]),
  Layer.provideMerge(RoundTrips.layer)
)

layer(queue, { excludeTestServices: true })("The task queue", (it) => {
  it.effect(
    "returns single validations before batch items, and picks batch items from all batches in random order",
    function* () {
      const { claim } = yield* TaskQueue
      const slots = [{ memberState: "SE", slots: 1, answerMs: null }]
      for (const batch of batches) yield* appendBatch(batch, 20)
      assert.deepStrictEqual(yield* claim(slots), [], "items cannot be claimed before their release")
      yield* MigratedDatabase.execute("UPDATE vatproof.tasks SET due_at = now() - interval '1 minute'")
      const single = { account_id, key_id, vat_id: "SE556000000001", force_live: false, expires_at }
      yield* append(ValidationAccepted.make({ ...single, request_hash: null, reference_hash: null }))
      const claimed = (yield* Effect.replicateEffect(claim(slots), 21)).flat()
      assert.deepStrictEqual([claimed.length, claimed[0]?.batchId], [21, null])
      // Each claim picks a random batch. The test fails in one of half a million runs, if all 20 claims pick the same batch.
      assert.deepStrictEqual(new Set(claimed.slice(1).map(({ batchId }) => batchId)), new Set(batches))
    }
  )

  it.effect("defers the tasks of all waiting attempts in one round trip, and keeps the leases of the others", function* () {
    const { claim, defer, keep } = yield* TaskQueue
    yield* closeAll
    yield* appendBatch("019371c0-5f00-7000-8000-0000000000c7", 30)
    yield* MigratedDatabase.execute("UPDATE vatproof.tasks SET due_at = now() - interval '1 minute' WHERE closed_by IS NULL")
    const claimed = yield* claim([{ memberState: "SE", slots: 30, answerMs: null }])
    const [kept, deferred] = [claimed.slice(0, 10), claimed.slice(10)]
    const deferAll = Effect.forEach(
      deferred,
      (task) => defer(task, { wait: Duration.hours(1), failure: "vies:MS_UNAVAILABLE", isOutage: false }),
      {
        concurrency: "unbounded"
      }
    )
    // The first deferral does not wait.
    const all = Effect.all([deferAll, keep(kept)], { concurrency: "unbounded" })
    assert.isAtMost(yield* RoundTrips.during(all), 3)
    const sql = yield* SqlClient.SqlClient
    const states =
      yield* sql`SELECT failure, claim IS NOT NULL AS claimed, due_at > now() + interval '59 minutes' AS later, count(*)::int AS tasks
      FROM vatproof.tasks WHERE closed_by IS NULL GROUP BY 1, 2, 3 ORDER BY tasks`
    assert.deepStrictEqual(states, [
      { failure: null, claimed: true, later: false, tasks: 10 },
      { failure: "vies:MS_UNAVAILABLE", claimed: false, later: true, tasks: 20 }
    ])
  })

  it.effect("resumes at most as many paused tasks of an API key as the key has units of its quota left", function* () {
    const { resume } = yield* TaskQueue
    const batch = "019371c0-5f00-7000-8000-0000000000bd"
    yield* appendBatch(batch, 5)
    const pause = MigratedDatabase.execute(
      `UPDATE vatproof.tasks SET failure = 'QUOTA', due_at = now() + interval '30 minutes' WHERE batch_id = '${batch}'`
    )
    yield* pause
    assert.strictEqual(yield* resume, 0, "no key")
    yield* MigratedDatabase.execute(
      `INSERT INTO vatproof.accounts (account_id, plan, per_month, created_at) VALUES ('${account_id}', 'free', 3, now())`
    )
    yield* MigratedDatabase.execute(`INSERT INTO vatproof.api_keys (key_id, account_id, key_sha256, prefix, issued_at)
      VALUES ('${key_id}', '${account_id}', sha256(''), 'svc_live_123', now())`)
    assert.strictEqual(yield* resume, 3)
    assert.strictEqual(yield* resume, 2, "the resumed tasks are not charged yet")
    yield* pause
    yield* MigratedDatabase.execute(
      `INSERT INTO vatproof.meters (log_id, meter_id, used) VALUES (0, 'key-${key_id}/' || to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM'), 3)`
    )
    assert.strictEqual(yield* resume, 0, "the month is used up")
    yield* MigratedDatabase.execute("UPDATE vatproof.accounts SET per_month = NULL")
    assert.strictEqual(yield* resume, 5)
  })

  it.effect(
    "does not return a task that waits for quota, even if the task is due or the register of its member state has recovered",
    function* () {
      const { claim } = yield* TaskQueue
      yield* closeAll
      yield* appendBatch("019371c0-5f00-7000-8000-0000000000be", 3)
      yield* MigratedDatabase.execute(`UPDATE vatproof.tasks SET failure = 'QUOTA', due_at = now() - interval '1 minute',
      attempted_at = now() - interval '1 hour' WHERE closed_by IS NULL`)
      yield* recovered
      assert.deepStrictEqual(yield* claim([{ memberState: "SE", slots: 3, answerMs: null }]), [])
    }
  )

  it.effect(
    "after a register's recovery, returns a task before it is due only if an outage made the task's last attempt fail",
    function* () {
      const { claim, defer } = yield* TaskQueue
      const slots = [{ memberState: "SE", slots: 3, answerMs: null }]
      yield* closeAll
      yield* appendBatch("019371c0-5f00-7000-8000-0000000000c2", 3)
      yield* MigratedDatabase.execute("UPDATE vatproof.tasks SET due_at = now() WHERE closed_by IS NULL")
      const [outage, rejected, ending] = yield* claim(slots)
      assert(outage !== undefined && rejected !== undefined && ending !== undefined)
      yield* MigratedDatabase.execute(
        `UPDATE vatproof.tasks SET expires_at = now() + interval '10 minutes' WHERE task_id = '${ending.taskId}'`
      )
      yield* defer(outage, { wait: retryDelay(9, 1), failure: "vies:MS_UNAVAILABLE", isOutage: true })
      const rejection = { wait: rejectionDelay(0), failure: "vies:INVALID_INPUT", isOutage: false }
      for (const task of [rejected, ending]) yield* defer(task, rejection)
      yield* recovered
      const claimed = yield* claim(slots)
      assert.deepStrictEqual(
        claimed.map(({ taskId }) => taskId),
        [outage.taskId]
      )
    }
  )

  it.effect("lets all replicas together try one task of a register at a time after a task without its answer", function* () {
    const { claim, defer } = yield* TaskQueue
    const slots = (answerMs: number | null) => [{ memberState: "SE", slots: 3, answerMs }]
    const endInterval = MigratedDatabase.execute(
      "UPDATE vatproof.rate_slots SET ends_at = now(), taken_at = ARRAY(SELECT t - interval '5 seconds' FROM unnest(taken_at) AS t)"
    )
    yield* closeAll
    yield* MigratedDatabase.execute("TRUNCATE vatproof.rate_slots")
    yield* appendBatch("019371c0-5f00-7000-8000-0000000000c4", 4)
    yield* MigratedDatabase.execute("UPDATE vatproof.tasks SET due_at = now() WHERE closed_by IS NULL")
    const [first, second] = yield* claim([{ memberState: "SE", slots: 2, answerMs: null }])
    assert(first !== undefined && second !== undefined)
    const outage = { wait: retryDelay(1, 0), failure: "vies:MS_UNAVAILABLE", isOutage: true }
    yield* defer(first, outage)
    assert.deepStrictEqual(yield* claim(slots(60_000)), [], "the answer is older than the outage")
    yield* endInterval
    const probes = (yield* Effect.all([claim(slots(null)), claim(slots(null))], { concurrency: 2 })).flat()
    assert.deepStrictEqual(
      probes.map(({ isProbe }) => isProbe),
      [true]
    )
    yield* defer(second, { wait: Duration.zero, failure: null, isOutage: false })
    const [probe] = yield* claim(slots(null))
    assert(probe !== undefined, "an attempt that says nothing about the register frees the place")
    yield* defer(probe, outage)
    yield* endInterval
    assert.strictEqual((yield* claim(slots(0))).length, 3, "an answer ends the outage, and wakes the first task")
  })

  it.effect("extends the leases of a worker's tasks, and does not wait for a task that an append is closing", function* () {
    const { claim, keep } = yield* TaskQueue
    yield* closeAll
    yield* appendBatch("019371c0-5f00-7000-8000-0000000000c3", 2)
    const endLeases = MigratedDatabase.execute("UPDATE vatproof.tasks SET due_at = now() WHERE closed_by IS NULL")
    yield* endLeases
    const [closing, open] = yield* claim([{ memberState: "SE", slots: 2, answerMs: null }])
    assert(closing !== undefined && open !== undefined)
    yield* endLeases
    const lock = `SELECT FROM vatproof.tasks WHERE task_id = '${closing.taskId}' FOR UPDATE`
    yield* MigratedDatabase.whileLocked(lock, keep([closing, open]))
    const extended = texts("SELECT task_id::text AS text FROM vatproof.tasks WHERE closed_by IS NULL AND due_at > now()")
    assert.deepStrictEqual(yield* extended, [open.taskId])
  })

  it.effect(
    "pauses a batch's waiting items of a member state after one of them has exceeded the monthly quota of the API key",
    function* () {
      const { claim, defer } = yield* TaskQueue
      const slots = [{ memberState: "SE", slots: 2, answerMs: null }]
      yield* closeAll
      yield* appendBatch("019371c0-5f00-7000-8000-0000000000bf", 5)
      yield* appendBatch("019371c0-5f00-7000-8000-0000000000c0", 1)
      yield* MigratedDatabase.execute("UPDATE vatproof.tasks SET due_at = now() WHERE closed_by IS NULL AND item > 0")
      const [first, second] = yield* claim(slots)
      assert(first !== undefined && second !== undefined)
      yield* defer(first, { wait: Duration.days(3), failure: "QUOTA", isOutage: false })
      assert.deepStrictEqual(yield* claim(slots), [])
      const read = yield* TaskCounts.makeRead
      assert.containSubset(yield* read, { waiting: 1, running: 1, quota: 4 })
      yield* defer(second, { wait: Duration.zero, failure: "bzst:evatr-0011", isOutage: false })
      assert.deepStrictEqual(
        (yield* claim(slots)).map(({ taskId }) => taskId),
        [second.taskId],
        "a claimed task is not paused"
      )
    }
  )

  it.effect("resumes the paused tasks of a revoked API key, so that the task engine can claim and cancel them", function* () {
    const { resume } = yield* TaskQueue
    yield* closeAll
    yield* appendBatch("019371c0-5f00-7000-8000-0000000000c1", 2)
    yield* MigratedDatabase.execute("UPDATE vatproof.tasks SET failure = 'QUOTA' WHERE closed_by IS NULL")
    yield* MigratedDatabase.execute("UPDATE vatproof.accounts SET per_month = 1")
    assert.strictEqual(yield* resume, 0)
    yield* MigratedDatabase.execute("UPDATE vatproof.api_keys SET revoked_at = now()")
    assert.strictEqual(yield* resume, 2)
  })

  it.effect("reports the number of tasks by state, and the age of the oldest task that is not paused for a quota", function* () {
    const read = yield* TaskCounts.makeRead
    const [waiting] = ["019371c0-5f00-7000-8000-0000000000bc"]
    yield* closeAll
    yield* appendBatch(waiting, 3)
    const set = (item: number, columns: string) =>
      MigratedDatabase.execute(`UPDATE vatproof.tasks SET ${columns} WHERE batch_id = '${waiting}' AND item = ${item}`)
    yield* set(0, "failure = 'QUOTA', accepted_at = now() - interval '3 days'")
    yield* set(1, "accepted_at = now() - interval '2 hours'")
    const { oldestMs, ...counts } = yield* read
    assert.deepStrictEqual(counts, { waiting: 2, running: 0, quota: 1 })
    assert.closeTo(oldestMs / 3_600_000, 2, 0.1)
    for (const item of [1, 2]) yield* set(item, "failure = 'QUOTA'")
    assert.deepStrictEqual(yield* read, { waiting: 0, running: 0, quota: 3, oldestMs: 0 })
  })
})
