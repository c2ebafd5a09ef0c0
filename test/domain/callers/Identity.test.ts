import { DateTime, Effect, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import type { KeyCaller } from "#domain/callers/Caller.ts"
import { Identity, InvalidApiKey, layerCached } from "#domain/callers/Identity.ts"
import { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import { billingPeriod } from "#domain/callers/BillingPeriod.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import { assert, it } from "#test/support/Test.ts"

const callerAt = (used: number, now: DateTime.Utc): KeyCaller => ({
  _tag: "Key",
  keyId: "k",
  accountId: "a",
  plan: "free",
  period: billingPeriod(now),
  validUntil: billingPeriod(now).end,
  isFormer: false,
  used,
  epoch: 0,
  stream: "key-k",
  meter: "key-k",
  limit: 10,
  perMinute: 10
})

type Failure = InvalidApiKey | StoreUnavailable

/** The cache of callers in front of an Identity that counts its reads, and fails while `failure` is set. */
const cached = Effect.gen(function* () {
  const state: { reads: number; failure: Failure | null } = { reads: 0, failure: null }
  const read = () =>
    Effect.flatMap(DateTime.now, (now) => {
      state.reads += 1
      return state.failure === null ? Effect.succeed(callerAt(state.reads, now)) : Effect.fail(state.failure)
    })
  const source = Layer.succeed(Identity, {
    byKey: read,
    refresh: read,
    byKeyId: read,
    refreshKeyId: read,
    byAddress: (address) => ({
      _tag: "Anonymous",
      addressHash: address,
      stream: address,
      meter: address,
      limit: 10,
      perMinute: 10
    })
  })
  const identity = yield* Effect.provide(Identity, layerCached.pipe(Layer.provide([source, NodeCrypto.layer])))
  const usedOf = (key: string) => Effect.map(identity.byKey(Redacted.make(key)), ({ used }) => used)
  return { identity, state, usedOf }
})

it.effect("the cache of callers reads a caller from the database once, and again on refresh", function* () {
  const { identity, state, usedOf } = yield* cached
  assert.deepStrictEqual([yield* usedOf("one"), yield* usedOf("one"), yield* usedOf("two")], [1, 1, 2])
  assert.strictEqual((yield* identity.refresh(Redacted.make("one"))).used, 3)
  assert.deepStrictEqual([yield* usedOf("one"), yield* usedOf("two")], [3, 2])
  assert.strictEqual(state.reads, 3)
})

it.effect("the cache of callers reads a caller again as soon as the caller's month has ended", function* () {
  const end = DateTime.toEpochMillis(DateTime.makeUnsafe("2026-12-01T00:00:00Z"))
  yield* TestClock.setTime(end - 1_000)
  const { usedOf } = yield* cached
  assert.strictEqual(yield* usedOf("one"), 1)
  yield* TestClock.setTime(end - 1)
  assert.strictEqual(yield* usedOf("one"), 1)
  yield* TestClock.setTime(end)
  assert.deepStrictEqual([yield* usedOf("one"), yield* usedOf("one")], [2, 2])
})

it.effect.each([new InvalidApiKey({}), new StoreUnavailable({})])(
  "the cache of callers removes a caller if the refresh fails with %s",
  function* (failure) {
    const { identity, state, usedOf } = yield* cached
    yield* usedOf("one")
    state.failure = failure
    assert.strictEqual(yield* usedOf("one"), 1)
    assert.strictEqual(yield* Effect.flip(identity.refresh(Redacted.make("one"))), failure)
    assert.strictEqual(yield* Effect.flip(usedOf("one")), failure)
    state.failure = null
    assert.strictEqual(yield* usedOf("one"), 4)
  }
)

it.effect("the cache of callers does not keep a failed look-up", function* () {
  const { state, usedOf } = yield* cached
  state.failure = new InvalidApiKey({})
  yield* Effect.flip(usedOf("one"))
  state.failure = null
  assert.strictEqual(yield* usedOf("one"), 2)
})

it.effect("the cache of callers makes no database query for a caller without an API key", function* () {
  const { identity, state } = yield* cached
  assert.strictEqual(identity.byAddress("192.0.2.1").stream, "192.0.2.1")
  assert.strictEqual(state.reads, 0)
})

it.effect("the cache of callers keeps at most 50,000 callers, and evicts the least recently used one", function* () {
  const { state, usedOf } = yield* cached
  yield* Effect.forEach(Array.from({ length: 50_001 }), (_, index) => usedOf(`key ${index}`), { discard: true })
  assert.strictEqual(state.reads, 50_001)
  yield* usedOf("key 50000")
  assert.strictEqual(state.reads, 50_001)
  yield* usedOf("key 0")
  assert.strictEqual(state.reads, 50_002)
})
