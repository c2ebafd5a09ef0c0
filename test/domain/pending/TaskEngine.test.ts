/** Timing of the engine, with a queue and a source that only count. */
import { Clock, DateTime, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Identity } from "#domain/callers/Identity.ts"
import { AlreadyRecorded } from "#domain/callers/Metering.ts"
import { RateLimits } from "#domain/callers/RateLimits.ts"
import { billingPeriod } from "#domain/callers/Usage.ts"
import * as TaskEngine from "#domain/pending/TaskEngine.ts"
import { type ClaimedTask, TaskQueue } from "#domain/pending/TaskQueue.ts"
import { TaskSignals } from "#domain/pending/TaskSignals.ts"
import { ValidateVatId } from "#domain/validation/ValidateVatId.ts"
import { Sources } from "#domain/vat/Sources.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import { assert, it } from "#test/support/Test.ts"

const taskOf = (number: number): ClaimedTask => ({
  taskId: `${number}`,
  claim: "",
  position: number,
  accountId: "a",
  keyId: "k",
  batchId: "b",
  vatId: `DE${number}`,
  memberState: "DE",
  attempts: 1,
  isExpired: false,
  isCancelled: false
})

const caller = Effect.map(DateTime.now, (now) => ({
  _tag: "Key" as const,
  keyId: "k",
  accountId: "a",
  plan: "enterprise" as const,
  period: billingPeriod(now),
  validUntil: billingPeriod(now).end,
  used: 0,
  epoch: 0,
  stream: "key-k",
  meter: "key-k",
  limit: 100_000,
  perMinute: 10
}))

const byAddress = (address: string) => ({
  _tag: "Anonymous" as const,
  addressHash: address,
  stream: address,
  meter: address,
  limit: 10,
  perMinute: 10
})

const status = Effect.map(DateTime.now, (lastChecked) => {
  const source = { state: "operational" as const, answers: true, latencyMs: 1_000, lastChecked }
  return { vies: source, bzst: source, active: "vies" as const, failoverActive: false, memberStates: [] }
})

/** Tasks of one member state. The source takes a second for each task. */
const simulate = (tasks: number) => {
  const seen = { claimed: 0, running: 0, mostAtOnce: 0, answered: 0 }
  const queue = Layer.mock(TaskQueue, {
    claim: (asked) =>
      Effect.sync(() => {
        const places = asked.find(({ memberState }) => memberState === "DE")?.places ?? 0
        const first = seen.claimed
        seen.claimed = Math.min(first + places, tasks)
        return Array.from({ length: seen.claimed - first }, (_, index) => taskOf(first + index))
      }),
    keep: () => Effect.void,
    accepted: ({ accountId, keyId, vatId }) =>
      Effect.succeed({
        accountId,
        keyId,
        vatId,
        request: { forceLive: false, requesterVatId: null, company: null, reference: null }
      })
  })
  const source = Layer.mock(ValidateVatId, {
    validate: () =>
      Effect.gen(function* () {
        seen.running += 1
        seen.mostAtOnce = Math.max(seen.mostAtOnce, seen.running)
        // oxlint-disable-next-line no-restricted-properties -- the TestClock's second, which the simulated source takes
        yield* Effect.sleep("1 second")
        seen.running -= 1
        seen.answered += 1
        // Ends the task without an answer.
        return yield* new AlreadyRecorded({ position: 0 })
      })
  })
  const others = Layer.mergeAll(
    Layer.mock(Identity, { refreshKeyId: () => caller, byAddress }),
    Layer.mock(RateLimits, { acquireSlot: () => Effect.succeed({ granted: true, retryAfterSeconds: 0 }) }),
    Layer.mock(Sources, { status }),
    NodeCrypto.layer,
    TaskSignals.layer
  )
  return { seen, engine: Layer.provide(TaskEngine.layer, [queue, source, others]) }
}

it.effect("validates 3,600 VAT IDs of a member state in little more than six minutes, ten at a time", function* () {
  const { engine, seen } = simulate(3_600)
  yield* Layer.build(engine)
  const startedMs = yield* Clock.currentTimeMillis
  while (seen.answered < 3_600) yield* TestClock.adjust("1 second")
  const minutes = ((yield* Clock.currentTimeMillis) - startedMs) / 60_000
  assert.deepStrictEqual([seen.mostAtOnce, seen.answered], [10, 3_600])
  assert.isBelow(minutes, 7.2)
})
