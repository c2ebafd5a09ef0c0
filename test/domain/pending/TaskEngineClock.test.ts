import { DateTime, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Identity } from "#domain/callers/Identity.ts"
import { RateLimiter } from "#domain/callers/RateLimiter.ts"
import { KeyedHash } from "#domain/kernel/KeyedHash.ts"
import * as TaskEngine from "#domain/pending/TaskEngine.ts"
import { TaskQueue, type TaskSlots } from "#domain/pending/TaskQueue.ts"
import { TaskSignals } from "#domain/pending/TaskSignals.ts"
import { ValidateVatId } from "#domain/validation/ValidateVatId.ts"
import { Sources, type SourceState } from "#domain/vat/Sources.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import { assert, it } from "#test/support/Test.ts"
import * as WallClock from "#test/support/WallClock.ts"

it.effect("the task engine claims tasks again after their register's recovery, even if the clock was set back", function* () {
  const wallClock = yield* WallClock.make
  let state: SourceState = "unavailable"
  let requested: ReadonlyArray<TaskSlots> = []
  const vies = { state: "operational", answers: true, latencyMs: 1, lastChecked: DateTime.makeUnsafe(0) } as const
  const status = Effect.sync(() => ({
    vies,
    bzst: vies,
    memberStates: [{ prefix: "SE", state, sinceMs: 0, answeredMs: null }],
    active: "vies" as const,
    failoverActive: false
  }))
  const services = Layer.mergeAll(
    Layer.mock(Sources, { status }),
    Layer.mock(TaskQueue, {
      claim: (slots) => Effect.sync(() => ((requested = slots), [])),
      keep: () => Effect.void,
      resume: Effect.succeed(0)
    }),
    TaskSignals.layer,
    NodeCrypto.layer,
    Layer.mock(RateLimiter, {}),
    Layer.mock(Identity, { byAddress: () => assert.fail("no task is claimed") }),
    Layer.mock(KeyedHash, { of: (_, text) => text }),
    Layer.mock(ValidateVatId, {})
  )
  const claimsOfSweden = () => requested.filter(({ memberState }) => memberState === "SE").length
  yield* wallClock.on(Layer.build(Layer.provide(TaskEngine.layer, services)))
  yield* TestClock.adjust("5 seconds")
  assert.strictEqual(claimsOfSweden(), 0)
  wallClock.setBack("1 hour")
  state = "operational"
  yield* TestClock.adjust("2 seconds")
  assert.strictEqual(claimsOfSweden(), 1)
})
