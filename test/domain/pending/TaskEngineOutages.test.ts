/**
 * Runs task engines and their guarded sources on a test clock, with the queue of tasks in Postgres. Before each statement, the times in
 * the database move back by the time that the test clock is ahead of the clock of the database.
 */
import { Clock, DateTime, Duration, Effect, Latch, Layer, Result, Schema, Semaphore } from "effect"
import { TestClock } from "effect/testing"
import { SqlSchema } from "effect/sql"
import { Identity } from "#domain/callers/Identity.ts"
import { Plans, usualPlans } from "#domain/callers/PlanLimits.ts"
import { RateLimiter } from "#domain/callers/RateLimiter.ts"
import { Integrity } from "#domain/log/Integrity.ts"
import type { DomainEvent } from "#domain/log/DomainEvent.ts"
import { KeyedHash } from "#domain/kernel/KeyedHash.ts"
import * as TaskEngine from "#domain/pending/TaskEngine.ts"
import { TaskQueue } from "#domain/pending/TaskQueue.ts"
import { TaskSignals } from "#domain/pending/TaskSignals.ts"
import { ValidateVatId } from "#domain/validation/ValidateVatId.ts"
import { ValidationAccepted } from "#domain/validation/ValidationTask.ts"
import { SourceLog, Sources } from "#domain/vat/Sources.ts"
import { parse } from "#domain/vat/VatId.ts"
import { SourceFailure } from "#domain/vat/Verdict.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as PgTaskQueue from "#events/pending/PgTaskQueue.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import * as ResilientSource from "#infra/sources/ResilientSource.ts"
import { ResilientSources } from "#infra/sources/ResilientSources.ts"
import * as SourceFailover from "#infra/sources/SourceFailover.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { sourceAnswer } from "#test/support/SourceAnswer.ts"
import { callerAt } from "#test/support/CallerAt.ts"
import { assert, layer } from "#test/support/Test.ts"
import { TestDatabase } from "#test/support/TestDatabase.ts"

const [account_id, key_id] = ["019371c0-5f00-7000-8000-0000000000ac", "019371c0-5f00-7000-8000-0000000000a1"]

const vatIdOf = (text: string) => Result.getOrThrow(parse(text))

const registerDown = new SourceFailure({
  source: "vies",
  reason: "member_state_unavailable",
  code: "MS_UNAVAILABLE",
  scope: "member_state",
  retry: "later"
})

/** Times of the tasks and of the registers' outages, which `makeWorld` moves back. */
const moveBack = (ms: number) => {
  const by = `interval '${ms} milliseconds'`
  return MigratedDatabase.execute(`WITH slots AS (UPDATE vatproof.rate_slots SET ends_at = ends_at - ${by},
      taken_at = ARRAY(SELECT taken - ${by} FROM unnest(taken_at) AS taken))
    UPDATE vatproof.tasks SET due_at = due_at - ${by}, attempted_at = attempted_at - ${by} WHERE closed_by IS NULL`)
}

/** Replicas on one database and one test clock. `down` has the registers that do not answer, `asked` the time of each call of VIES. */
const makeWorld = Effect.gen(function* () {
  const clock = yield* TestClock.make()
  // The background jobs besides the claims sleep for seconds. Longer sleeps save processor time.
  const sleep = (duration: Duration.Duration) =>
    clock.sleep(Duration.toSeconds(duration) > 1 ? Duration.max(duration, Duration.minutes(1)) : duration)
  const calm = { ...clock, sleep }
  const real = yield* Clock.Clock
  const queue = yield* TaskQueue
  const mutex = yield* Semaphore.make(1)
  const down = new Set<string>()
  const asked: Array<number> = []
  let running = 0
  /** Open while no statement runs. */
  const atRest = yield* Latch.make(true)
  /** True if a stored answer closes the next validation, so that no source is asked. */
  let isCached = false
  let movedMs = 0
  const startedMs = real.currentTimeMillisUnsafe()
  const now = () => clock.currentTimeMillisUnsafe() / 1_000
  yield* MigratedDatabase.execute("TRUNCATE vatproof.tasks, vatproof.rate_slots")

  const ended = Effect.sync(() => {
    running -= 1
    if (running === 0) atRest.openUnsafe()
  })

  /** Runs a statement on the real clock, after the times in the database have moved back. */
  const onDatabase = <A, E, R>(statement: Effect.Effect<A, E, R>) =>
    Effect.suspend(() => {
      running += 1
      atRest.closeUnsafe()
      const moved = Effect.suspend(() => {
        const aheadMs = clock.currentTimeMillisUnsafe() - (real.currentTimeMillisUnsafe() - startedMs)
        const ms = Math.max(0, aheadMs - movedMs)
        if (ms < 5) return Effect.void
        movedMs += ms
        return moveBack(ms)
      })
      return mutex.withPermits(1)(Effect.andThen(moved, statement))
    }).pipe(Effect.provideService(Clock.Clock, real), Effect.ensuring(ended))

  const ask = ({ vatId }: ResilientSource.SourceQuestion) =>
    Effect.suspend(() => {
      asked.push(now())
      return down.has(vatId.memberState.prefix) ? Effect.fail(registerDown) : Effect.succeed(sourceAnswer)
    })
  const guard = { probe: Effect.void, concurrentPerMemberState: 10, timeout: () => Duration.seconds(20) }
  const sources = SourceFailover.layer({ requester: null, replica: "a" }).pipe(
    Layer.provide(
      Layer.effect(
        ResilientSources,
        Effect.all({
          vies: ResilientSource.make({ ...guard, source: "vies", ask }),
          bzst: ResilientSource.make({ ...guard, source: "bzst", ask: () => Effect.die("unused") })
        })
      )
    ),
    Layer.provide(Layer.succeed(SourceLog, { record: () => Effect.void }))
  )

  const close = (taskId: string) =>
    onDatabase(
      MigratedDatabase.execute(
        `UPDATE vatproof.tasks SET closed_by = 0, state = 'final', claim = NULL WHERE task_id = '${taskId}'`
      )
    )
  const database = yield* Effect.context<TestDatabase>()
  const validations = Layer.effect(
    ValidateVatId,
    Effect.map(Sources, ({ lookUp }) =>
      ValidateVatId.of({
        accept: () => assert.fail("unused"),
        answerFromCache: () => assert.fail("unused"),
        countCall: () => assert.fail("unused"),
        requireAllowed: () => assert.fail("unused"),
        validate: ({ input, task }) =>
          Effect.suspend(() => {
            const asks = !isCached
            isCached = false
            return asks
              ? Effect.asVoid(
                  lookUp({ vatId: vatIdOf(input), requester: null, hasKey: true, mayFallBack: true, isBackground: true })
                )
              : Effect.void
          }).pipe(
            Effect.andThen(Effect.orDie(close(task?.taskId ?? ""))),
            Effect.provideContext(database),
            Effect.as({
              vatId: vatIdOf(input),
              answer: sourceAnswer,
              served: "live" as const,
              consultationNumber: null,
              confirmation: null
            })
          )
      })
    )
  )

  const services = Layer.mergeAll(
    Layer.succeed(TaskQueue, {
      ...queue,
      claim: (slots) => Effect.provideContext(Effect.orDie(onDatabase(queue.claim(slots))), database),
      defer: (task, deferral) => Effect.provideContext(Effect.orDie(onDatabase(queue.defer(task, deferral))), database),
      accepted: ({ accountId, keyId, vatId }) =>
        Effect.succeed({
          accountId,
          keyId,
          vatId,
          request: { maxAge: null, requesterVatId: null, company: null, reference: null }
        }),
      keep: () => Effect.void,
      resume: Effect.succeed(0)
    }),
    TaskSignals.layer,
    NodeCrypto.layer,
    Layer.mock(RateLimiter, {}),
    Layer.mock(Identity, {
      refreshKeyId: () => Effect.succeed(callerAt(0)),
      byAddress: () => assert.fail("unused")
    }),
    Layer.mock(KeyedHash, { of: (_, text) => text })
  )

  /** Starts a replica. Returns the function that asks its sources for a client. */
  const replica = Effect.gen(function* () {
    const scope = yield* Effect.scope
    const engine = TaskEngine.layer.pipe(Layer.provide(validations), Layer.provideMerge(sources), Layer.provide(services))
    const context = yield* Layer.buildWithMemoMap(engine, Layer.makeMemoMapUnsafe(), scope)
    return (vatId: string) =>
      Effect.flatMap(Sources, ({ lookUp }) =>
        Effect.result(lookUp({ vatId: vatIdOf(vatId), requester: null, hasKey: true, mayFallBack: false }))
      ).pipe(Effect.provideContext(context), Effect.provideService(Clock.Clock, clock))
  }).pipe(Effect.provideService(Clock.Clock, calm))

  /** Moves the test clock ahead, and waits until the engines wait again. */
  const advance = Effect.fnUntraced(function* (seconds: number) {
    yield* clock.adjust(Duration.millis(Math.ceil(1_000 * seconds)))
    // A fiber that resumes needs some turns before its next statement.
    for (let idle = 0; idle < 20; idle = running === 0 ? idle + 1 : 0) {
      yield* atRest.await
      yield* Effect.yieldNow
    }
  })

  const submit = (vat_id: string) => {
    const facts = { account_id, key_id, vat_id, force_live: false, expires_at: DateTime.makeUnsafe("2100-01-01T00:00:00Z") }
    const event: DomainEvent = ValidationAccepted.make({ ...facts, request_hash: null, reference_hash: null })
    return onDatabase(
      Effect.flatMap(EventStore, (store) =>
        store.append({ stream: `key-${key_id}`, expectedVersion: null, events: [event], charge: null })
      )
    )
  }

  const pending = Effect.gen(function* () {
    const sql = yield* (yield* TestDatabase).administrator
    const find = SqlSchema.findAll({
      Request: Schema.Void,
      Result: Schema.Struct({ attempts: Schema.Int, next_s: Schema.Number }),
      execute: () => sql`SELECT t.attempts, extract(epoch FROM
          vatproof.next_attempt(t.member_state, t.claim, t.due_at, t.attempted_at, t.attempts) - clock_timestamp())::float8 AS next_s
        FROM vatproof.tasks t WHERE t.closed_by IS NULL`
    })
    return yield* onDatabase(find(undefined))
  })

  /** Advances by seconds until no validation is pending. Returns the seconds. */
  const untilAnswered = Effect.gen(function* () {
    const from = now()
    yield* Effect.repeat(Effect.andThen(advance(1), pending), { until: (rows) => rows.length === 0 })
    return now() - from
  })

  /** Advances by `seconds`. Skips the times in which no probe is due. */
  const skip = Effect.fnUntraced(function* (seconds: number) {
    const end = now() + seconds
    while (now() < end) {
      const next = Math.min(...(yield* pending).map(({ next_s }) => next_s))
      yield* advance(Math.min(end - now(), Math.max(1, next)))
    }
  })

  const cacheNext = () => void (isCached = true)

  return { advance, asked, cacheNext, down, now, pending, replica, skip, submit, untilAnswered }
})

const ground = PgTaskQueue.layer.pipe(
  Layer.provideMerge(MigratedDatabase.layer),
  Layer.provide([NodeCrypto.layer, Integrity.layer, Layer.succeed(Plans, usualPlans)])
)

layer(ground, { excludeTestServices: true })("during an outage of a register", (it) => {
  it.effect.each([
    [20, 15],
    [45, 15],
    [150, 15],
    [599, 15],
    [1_200, 31]
  ] as const)("of %s s, a single pending validation is answered at most %s s after the recovery", function* ([outage, seconds]) {
    const { advance, asked, down, pending, replica, skip, submit, untilAnswered } = yield* makeWorld
    yield* replica
    down.add("SE")
    yield* submit("SE556000000001")
    yield* skip(outage)
    const [task] = yield* pending
    const calls = asked.length
    assert.strictEqual(task?.attempts, calls)
    yield* advance(Math.max(0, (task?.next_s ?? 0) - 1))
    assert.strictEqual(asked.length, calls, "next_attempt_at is not too late")
    for (let second = 0; second < 5; second += 1) yield* advance(1)
    assert.strictEqual(asked.length, calls + 1, "next_attempt_at is not too early")
    down.clear()
    assert.isAtMost(yield* untilAnswered, seconds)
  })

  it.effect(
    "of three registers for 24 hours, two replicas with 30 pending validations ask them at most 1,500 times",
    function* () {
      const { asked, down, pending, replica, skip, submit } = yield* makeWorld
      yield* replica
      yield* replica
      for (const prefix of ["SE556000000", "EE1000000", "SI123456"]) {
        down.add(prefix.slice(0, 2))
        for (let item = 0; item < 10; item += 1)
          yield* submit(`${prefix}${String(item).padStart(prefix.startsWith("SE") ? 3 : 2, "0")}`)
      }
      yield* skip(86_400)
      assert.isAtMost(asked.length, 1_500)
      assert.isAtLeast(asked.length, 1_100, "the registers are probed every five minutes")
      const attempts = (yield* pending).map(({ attempts }) => attempts)
      assert.strictEqual(
        attempts.reduce((sum, count) => sum + count),
        asked.length
      )
      assert.isAtLeast(Math.min(...attempts), Math.max(...attempts) / 2, "the validations take turns")
    },
    120_000
  )

  it.effect("the end of a probe without an answer of the register does not delay the next probe", function* () {
    const { advance, cacheNext, down, replica, skip, submit, untilAnswered } = yield* makeWorld
    yield* replica
    down.add("SE")
    for (const item of [1, 2]) yield* submit(`SE55600000000${item}`)
    yield* skip(60)
    cacheNext()
    yield* advance(12)
    down.clear()
    assert.isAtMost(yield* untilAnswered, 15)
  })

  it.effect("an answer to a client of any replica wakes the pending validations", function* () {
    const { asked, down, replica, skip, submit, untilAnswered } = yield* makeWorld
    yield* replica
    const askSecond = yield* replica
    down.add("SE")
    for (const item of [1, 2, 3]) yield* submit(`SE55600000000${item}`)
    yield* skip(3 * 3_600)
    assert.isAbove(asked.length, 3)
    down.clear()
    assert.strictEqual((yield* askSecond("SE556000000009"))._tag, "Success")
    assert.isAtMost(yield* untilAnswered, 5)
  })
})
