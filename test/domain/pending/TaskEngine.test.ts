/** Runs the task engine with the test clock: many tasks of one member state, and tasks whose attempts fail. */
import { Clock, DateTime, Duration, Effect, Exit, Layer, Result, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Identity, InvalidApiKey } from "#domain/callers/Identity.ts"
import { KeyedHash } from "#domain/kernel/KeyedHash.ts"
import { RateLimiter } from "#domain/callers/RateLimiter.ts"
import { PaidPlanRequired } from "#domain/callers/PaymentRequired.ts"
import { ApiKeyRequired, ConfirmationUnsupported, InvalidRequester } from "#domain/receipts/ConfirmationRules.ts"
import * as TaskEngine from "#domain/pending/TaskEngine.ts"
import { type ClaimedTask, type TaskEnd, TaskQueue } from "#domain/pending/TaskQueue.ts"
import { TaskSignals } from "#domain/pending/TaskSignals.ts"
import { ValidateVatId } from "#domain/validation/ValidateVatId.ts"
import type { Validation } from "#domain/validation/ValidationQuestion.ts"
import * as VatIds from "#domain/vat/VatId.ts"
import { Sources, type SourcesStatus, SourcesUnavailable } from "#domain/vat/Sources.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import * as ViesBudget from "#infra/sources/ViesBudget.ts"
import { callerAt } from "#test/support/CallerAt.ts"
import { assert, describe, it } from "#test/support/Test.ts"

const slots = 10
const answerTime = "1 second"
const unlimited = 1_000_000
const dayMs = Duration.toMillis(Duration.days(1))

/** A task queue in memory, which claims due tasks in the order in which they became due. */
const makeQueue = Effect.fnUntraced(function* (items: number, batchId: string | null = "b") {
  const clock = yield* Clock.Clock
  let due: Array<string> = Array.from({ length: items }, (_, item) => `${item}`)
  let waiting: Array<{ readonly taskId: string; readonly dueMs: number }> = []
  const attempts = new Map<string, number>()
  const ended: Array<TaskEnd> = []

  const claimed = (taskId: string): ClaimedTask => {
    attempts.set(taskId, (attempts.get(taskId) ?? 0) + 1)
    const owner = { accountId: "a", keyId: "k", batchId }
    const task = {
      taskId,
      claim: taskId,
      position: 0,
      vatId: "DE123456789",
      memberState: "DE",
      attempts: attempts.get(taskId) ?? 1
    }
    return { ...owner, ...task, isExpired: false, isCancelled: false, isProbe: false, accepted: null }
  }
  const queue = Layer.succeed(
    TaskQueue,
    TaskQueue.of({
      claim: (requested) =>
        Effect.sync(() => {
          const now = clock.currentTimeMillisUnsafe()
          due = [...due, ...waiting.filter(({ dueMs }) => dueMs <= now).map(({ taskId }) => taskId)]
          waiting = waiting.filter(({ dueMs }) => dueMs > now)
          const free = requested.find(({ memberState }) => memberState === "DE")?.slots ?? 0
          return due.splice(0, free).map(claimed)
        }),
      keep: () => Effect.void,
      resume: Effect.succeed(0),
      defer: ({ taskId }, { wait }) =>
        Effect.sync(() => void waiting.push({ taskId, dueMs: clock.currentTimeMillisUnsafe() + Duration.toMillis(wait) })),
      accepted: () =>
        Effect.succeed({
          accountId: "a",
          keyId: "k",
          vatId: "DE123456789",
          request: { maxAge: null, requesterVatId: null, company: null, reference: null }
        }),
      close: (_, __, end) => Effect.sync(() => void ended.push(end))
    })
  )
  return { queue, ended, isIdle: () => due.length === 0 }
})

/** A RateLimiter in memory: a daily budget of calls, and one slot per bucket, which stays taken for the length of the window. */
const limits = Layer.effect(
  RateLimiter,
  Effect.map(Clock.Clock, (clock) => {
    const spentOn = new Map<number, number>()
    const spendBudget = (_: string, calls: number, limit: number) =>
      Effect.sync(() => {
        const now = clock.currentTimeMillisUnsafe()
        const day = Math.floor(now / dayMs)
        const spent = spentOn.get(day) ?? 0
        const granted = spent + calls <= limit
        if (granted) spentOn.set(day, spent + calls)
        return { granted, spent: granted ? spent + calls : spent, endsIn: Duration.millis((day + 1) * dayMs - now) }
      })
    const takenUntil = new Map<string, number>()
    const acquireSlots = (buckets: ReadonlyArray<string>, _: number, window: Duration.Input) =>
      Effect.sync(() => {
        const now = clock.currentTimeMillisUnsafe()
        const key = buckets.join()
        const freeAt = takenUntil.get(key) ?? now
        if (freeAt <= now) takenUntil.set(key, now + Duration.toMillis(window))
        return { granted: freeAt <= now, retryAfterSeconds: Math.ceil((freeAt - now) / 1_000) }
      })
    return { ...unused, acquireSlots, spendBudget }
  })
)
const die = () => Effect.die("unused")
const unused = { checkSlots: die, acquireLease: die, releaseLease: die }

const vatId = Result.getOrThrow(VatIds.parse("DE123456789"))
const epoch = DateTime.makeUnsafe(0)

const validation: Validation = {
  vatId,
  answer: { source: "vies", valid: true, answered_at: epoch, company_name: null, company_address: null },
  served: "live",
  consultationNumber: null,
  confirmation: null
}

const operational = { state: "operational", answers: true, latencyMs: 1_000, lastChecked: epoch } as const
const status: SourcesStatus = {
  vies: operational,
  bzst: operational,
  memberStates: [{ prefix: vatId.memberState.prefix, state: "operational", sinceMs: 0, answeredMs: null }],
  active: "vies",
  failoverActive: false
}

const engine = (queue: Layer.Layer<TaskQueue>, validations: Layer.Layer<ValidateVatId>) => {
  const identity = { refreshKeyId: () => Effect.succeed(callerAt(0)), byAddress: () => assert.fail("every item has a key") }
  const sources = Layer.mock(Sources, { status: Effect.succeed(status) })
  const services = [
    queue,
    limits,
    TaskSignals.layer,
    NodeCrypto.layer,
    Layer.mock(Identity, identity),
    Layer.succeed(KeyedHash, { of: (_, text) => text }),
    sources,
    validations
  ] as const
  return Layer.provide(TaskEngine.layer, Layer.mergeAll(...services))
}

/** Runs the engine until every item has an answer. Returns the duration, the maximum of concurrent calls, and the calls per day. */
const simulate = Effect.fnUntraced(function* (items: number, perDay: number) {
  const { isIdle, queue } = yield* makeQueue(items)
  const clock = yield* Clock.Clock
  let running = 0
  let maxRunning = 0
  let answered = 0
  const callsOn = new Map<number, number>()

  const makeValidate = Effect.gen(function* () {
    const spend = yield* ViesBudget.make(perDay)
    const call = Effect.gen(function* () {
      running += 1
      maxRunning = Math.max(maxRunning, running)
      const day = Math.floor(clock.currentTimeMillisUnsafe() / dayMs)
      callsOn.set(day, (callsOn.get(day) ?? 0) + 1)
      yield* Effect.delay(Effect.void, answerTime)
      running -= 1
      answered += 1
    })
    const validate = () =>
      spend(true).pipe(
        Effect.mapError(({ code, reason, retry_after_s = 0, source }) => {
          const attempt = { source, outcome: reason, code, started_at: DateTime.makeUnsafe(0), duration_ms: 0 }
          return new SourcesUnavailable({ message: reason, attempts: [attempt], retryAfterSeconds: retry_after_s ?? 0 })
        }),
        Effect.andThen(call),
        Effect.as(validation)
      )
    return { validate }
  })

  const validations = Layer.unwrap(Effect.map(makeValidate, (members) => Layer.mock(ValidateVatId, members)))
  const scope = yield* Scope.make()
  yield* Layer.buildWithScope(engine(queue, Layer.provide(validations, limits)), scope)
  const startedMs = clock.currentTimeMillisUnsafe()
  const advance = Effect.suspend(() => TestClock.adjust(running === 0 && isIdle() ? "5 minutes" : "1 second"))
  yield* Effect.repeat(advance, { until: () => answered === items })
  yield* Scope.close(scope, Exit.void)
  return {
    seconds: (clock.currentTimeMillisUnsafe() - startedMs) / 1_000,
    maxRunning,
    callsOn: [...callsOn.values()]
  }
})

describe("the task engine, for a member state whose register answers in a second,", () => {
  it.effect("answers 36,000 tasks in at most 1.2 hours with ten concurrent calls", function* () {
    const items = 36_000
    const { callsOn, maxRunning, seconds } = yield* simulate(items, unlimited)
    assert.isAtMost(seconds, 1.2 * 3_600)
    assert.strictEqual(maxRunning, slots)
    assert.deepStrictEqual(callsOn, [items])
  })

  it.effect("leaves a fifth of the daily budget of VIES calls to synchronous requests", function* () {
    yield* TestClock.adjust("22 hours")
    const { callsOn, maxRunning } = yield* simulate(2_000, 2_000)
    assert.isAtMost(maxRunning, slots)
    assert.deepStrictEqual(callsOn, [1_600, 400])
  })
})

/** Runs the engine on a queue with a stand-in for ValidateVatId, until the condition holds. */
const runUntil = (
  queue: Effect.Success<ReturnType<typeof makeQueue>>["queue"],
  validations: Layer.Layer<ValidateVatId>,
  until: () => boolean
) =>
  Effect.scoped(Effect.andThen(Layer.build(engine(queue, validations)), Effect.repeat(TestClock.adjust("1 second"), { until })))

describe("the task engine", () => {
  it.effect.each([
    ["the API key of the task was revoked", "key_revoked", new InvalidApiKey({})],
    [
      "the plan of the API key no longer includes confirmations",
      "not_allowed",
      new PaidPlanRequired({ plan: "free", limit: 10 })
    ],
    ["the validation needs an API key", "not_allowed", new ApiKeyRequired({ message: "" })],
    ["the operator no longer allows confirmations of the VAT ID", "not_allowed", new ConfirmationUnsupported({ message: "" })],
    ["the requester is no longer accepted", "not_allowed", new InvalidRequester({ allowed: "DE" })]
  ] as const)("closes a task if %s, with the reason %s", function* ([_, reason, refusal]) {
    const { ended, queue } = yield* makeQueue(1)
    const validations = Layer.mock(ValidateVatId, { validate: () => Effect.fail(refusal) })
    yield* runUntil(queue, validations, () => ended.length > 0)
    assert.deepStrictEqual(ended, [reason])
  })
})

describe("a task about a German VAT ID", () => {
  it.effect.each([
    ["asks the BZSt at night at its first attempt if it is a single validation", null, true],
    ["does not ask the BZSt at night if it is an item of a batch", "b", false]
  ] as const)("%s", function* ([_, batchId, mayAsk]) {
    yield* TestClock.setTime(DateTime.toEpochMillis(DateTime.makeUnsafe("2026-11-24T22:30:00Z")))
    const { queue } = yield* makeQueue(1, batchId)
    const asked: Array<boolean | undefined> = []
    const validate = ({ mayAskBzst }: { readonly mayAskBzst?: boolean }) =>
      Effect.sync(() => (asked.push(mayAskBzst), validation))
    yield* runUntil(queue, Layer.mock(ValidateVatId, { validate }), () => asked.length > 0)
    assert.deepStrictEqual(asked, [mayAsk])
  })

  it.effect("is retried with the BZSt after five minutes while the daily budget of VIES calls is spent", function* () {
    yield* TestClock.setTime(DateTime.toEpochMillis(DateTime.makeUnsafe("2026-11-24T09:00:00Z")))
    const { queue } = yield* makeQueue(1)
    const clock = yield* Clock.Clock
    const startedMs = clock.currentTimeMillisUnsafe()
    const asked: Array<readonly [minute: number, mayAskBzst: boolean | undefined]> = []
    const attempt = { started_at: epoch, duration_ms: 0 }
    const spent = { ...attempt, source: "vies", outcome: "over_budget", code: "BUDGET" } as const
    const down = { ...attempt, source: "bzst", outcome: "unavailable", code: "evatr-0011" } as const
    const validations = Layer.mock(ValidateVatId, {
      validate: ({ mayAskBzst }) => {
        asked.push([Math.floor((clock.currentTimeMillisUnsafe() - startedMs) / 60_000), mayAskBzst])
        const failure = { message: "", retryAfterSeconds: mayAskBzst === true ? 10 : 15 * 3_600 }
        return Effect.fail(new SourcesUnavailable({ ...failure, attempts: mayAskBzst === true ? [spent, down] : [spent] }))
      }
    })
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* Layer.build(engine(queue, validations))
        yield* TestClock.adjust("6 minutes")
      })
    )
    assert.deepStrictEqual(asked, [
      [0, true],
      [0, false],
      [5, true]
    ])
  })
})

describe("a task whose question a source rejects", () => {
  const attempt = { started_at: epoch, duration_ms: 0 }
  const rejected = { ...attempt, source: "vies", outcome: "input_rejected", code: "INVALID_INPUT" } as const
  const refused = { ...attempt, source: "bzst", outcome: "refused", code: "evatr-0006" } as const
  const blocked = { ...attempt, source: "vies", outcome: "blocked", code: "VAT_BLOCKED" } as const
  const down = { ...attempt, source: "vies", outcome: "member_state_unavailable", code: "MS_UNAVAILABLE" } as const

  const shortestSleep = Duration.seconds(10)

  it.effect.each([
    ["is not retried for 18 hours if every source rejects the question", [rejected, refused], 1],
    ["is not retried for 18 hours if VIES blocks the VAT ID", [blocked], 1],
    ["is retried about every 30 minutes if the other source has an outage", [down, refused], 38]
  ] as const)("%s", function* ([_, attempts, count]) {
    yield* TestClock.setTime(DateTime.toEpochMillis(DateTime.makeUnsafe("2026-11-24T09:00:00Z")))
    const { queue } = yield* makeQueue(1)
    let asked = 0
    const outage = new SourcesUnavailable({ message: "", attempts, retryAfterSeconds: 10 })
    const validate = () => Effect.suspend(() => ((asked += 1), Effect.fail(outage)))
    // The engine polls each second. Longer sleeps save processor time: the waits of the task are minutes and hours.
    const clock = yield* Clock.Clock
    const sleepy = { ...clock, sleep: (duration: Duration.Duration) => clock.sleep(Duration.max(duration, shortestSleep)) }
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* Effect.provideService(Layer.build(engine(queue, Layer.mock(ValidateVatId, { validate }))), Clock.Clock, sleepy)
        yield* TestClock.adjust("18 hours")
      })
    )
    assert.closeTo(asked, count, count / 5)
  })
})
