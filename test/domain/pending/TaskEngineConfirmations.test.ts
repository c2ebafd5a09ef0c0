/** Runs two task engines with the test clock: qualified confirmations of the items of a batch. */
import { Clock, DateTime, Duration, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Identity } from "#domain/callers/Identity.ts"
import { billingPeriod } from "#domain/callers/BillingPeriod.ts"
import type { KeyCaller } from "#domain/callers/Caller.ts"
import { RateLimiter } from "#domain/callers/RateLimiter.ts"
import { KeyedHash } from "#domain/kernel/KeyedHash.ts"
import { untilQuietEnds } from "#domain/pending/BzstPacing.ts"
import * as TaskEngine from "#domain/pending/TaskEngine.ts"
import { type ClaimedTask, TaskQueue } from "#domain/pending/TaskQueue.ts"
import { TaskSignals } from "#domain/pending/TaskSignals.ts"
import { ValidateVatId } from "#domain/validation/ValidateVatId.ts"
import { ConfirmationRefusal } from "#domain/receipts/ConfirmationSource.ts"
import { Sources } from "#domain/vat/Sources.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import { assert, it } from "#test/support/Test.ts"

const epoch = DateTime.makeUnsafe(0)
const owner = { keyId: "k", accountId: "a", stream: "key-k", meter: "key-k-1970-01", plan: "enterprise" } as const
const terms = {
  limit: 1_000,
  perMinute: 1_000,
  period: billingPeriod(epoch),
  validUntil: epoch,
  isFormer: false,
  used: 0,
  epoch: 0
}
const caller: KeyCaller = { _tag: "Key", ...owner, ...terms }

const companies = 200
const company = { name: "Muster GmbH", street: null, zip: null, city: "Berlin" }
const requesters = ["DE811115368", "DE123456789"]
const requesterOf = (taskId: string) => requesters[Number(taskId) % requesters.length] ?? ""
const vatIdOf = (taskId: string) => `DE${100_000_000 + Number(taskId)}`

/** A queue and limits in memory, which all replicas share. `claims` counts the claims of tasks. */
const makeStore = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const counts = { claims: 0 }
  const due = new Map(Array.from({ length: companies }, (_, item) => [String(item), 0]))
  const claimed = (taskId: string): ClaimedTask => {
    counts.claims += 1
    due.set(taskId, Number.POSITIVE_INFINITY)
    const item = { accountId: "a", keyId: "k", batchId: "b", vatId: vatIdOf(taskId), memberState: "DE" }
    const rest = { isExpired: false, isCancelled: false, isProbe: false, accepted: null }
    return { ...item, ...rest, taskId, claim: taskId, position: 0, attempts: 1 }
  }
  const queue = Layer.mock(TaskQueue, {
    claim: (slots) =>
      Effect.sync(() => {
        const free = slots.find(({ memberState }) => memberState === "DE")?.slots ?? 0
        const ready = [...due].filter(([_, dueMs]) => dueMs <= clock.currentTimeMillisUnsafe())
        return ready.slice(0, free).map(([taskId]) => claimed(taskId))
      }),
    keep: () => Effect.void,
    resume: Effect.succeed(0),
    defer: ({ taskId }, { wait }) =>
      Effect.sync(() => void due.set(taskId, clock.currentTimeMillisUnsafe() + Duration.toMillis(wait))),
    accepted: ({ taskId }) => {
      const request = { maxAge: null, requesterVatId: requesterOf(taskId), company, reference: null }
      return Effect.succeed({ accountId: "a", keyId: "k", vatId: vatIdOf(taskId), request })
    }
  })
  const leases = new Map<string, string>()
  const limits = Layer.mock(RateLimiter, {
    acquireSlots: () => Effect.succeed({ granted: true, retryAfterSeconds: 0 }),
    acquireLease: (bucket, holder) => Effect.sync(() => (leases.has(bucket) ? false : (leases.set(bucket, holder), true))),
    releaseLease: (bucket, holder) => Effect.sync(() => void (leases.get(bucket) === holder && leases.delete(bucket)))
  })
  return { counts, limits, queue }
})

const source = { state: "operational", answers: true, latencyMs: 1, lastChecked: DateTime.makeUnsafe(0) } as const
const memberStates = [{ prefix: "DE", state: "operational", sinceMs: 0, answeredMs: null }] as const
const status = Effect.succeed({ vies: source, bzst: source, memberStates, active: "vies" as const, failoverActive: false })

it.effect("200 confirmations follow one another for each requester on two replicas, and none begins at night", function* () {
  yield* TestClock.setTime(DateTime.toEpochMillis(DateTime.makeUnsafe("2026-11-24T21:58:00Z")))
  const { counts, limits, queue } = yield* makeStore
  const running = new Map<string, number>()
  const asked: Array<string> = []
  const times: Array<DateTime.Utc> = []
  const concurrent: Array<number> = []
  const change = (requester: string, by: number) => running.set(requester, (running.get(requester) ?? 0) + by)
  const validations = Layer.mock(ValidateVatId, {
    validate: Effect.fnUntraced(function* ({ input, requesterVatId }) {
      const requester = requesterVatId ?? ""
      asked.push(input)
      times.push(yield* DateTime.now)
      change(requester, 1)
      concurrent.push(running.get(requester) ?? 0)
      yield* Effect.delay(Effect.void, "3 seconds")
      change(requester, -1)
      return yield* new ConfirmationRefusal({ code: "evatr-0006", meaning: "", attempts: [] })
    })
  })
  const services = Layer.mergeAll(
    queue,
    limits,
    TaskSignals.layer,
    NodeCrypto.layer,
    Layer.mock(Identity, { byAddress: () => assert.fail("every item has a key"), refreshKeyId: () => Effect.succeed(caller) }),
    Layer.succeed(KeyedHash, { of: (_, text) => text }),
    Layer.mock(Sources, { status }),
    validations
  )
  yield* Layer.build(Layer.provide(Layer.fresh(TaskEngine.layer), services))
  yield* Layer.build(Layer.provide(Layer.fresh(TaskEngine.layer), services))
  yield* Effect.repeat(TestClock.adjust("1 second"), { times: 150 })
  assert.isAbove(asked.length, 40, "the confirmations of both requesters run before 23:00")
  assert.isBelow(asked.length, companies)
  yield* TestClock.adjust("360 minutes")
  yield* Effect.repeat(TestClock.adjust("1 second"), { times: 900 })
  assert.lengthOf(asked, companies)
  assert.strictEqual(new Set(asked).size, companies)
  assert.deepStrictEqual([...new Set(concurrent)], [1])
  assert.deepStrictEqual(
    times.filter((time) => Duration.isPositive(untilQuietEnds(time))),
    []
  )
  assert.isBelow(counts.claims, 10 * companies)
})
