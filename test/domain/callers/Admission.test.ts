import { Effect, Exit, Fiber, Layer, MutableRef } from "effect"
import * as Admission from "#domain/callers/Admission.ts"
import type { AnonymousCaller, Caller } from "#domain/callers/Caller.ts"
import { Identity } from "#domain/callers/Identity.ts"
import { Metering, PreconditionFailed } from "#domain/callers/Metering.ts"
import type { Standing } from "#domain/callers/Standing.ts"
import { assert, it } from "#test/support/Test.ts"

const caller: AnonymousCaller = { _tag: "Anonymous", addressHash: "h", stream: "s", meter: "m", limit: 10, perMinute: 10 }

/** Makes an Admission for a caller that has used `before` units. `use` sets the used units. `counted` is the number of counted calls. */
const admissionAt = Effect.fnUntraced(function* (before: number) {
  let used = before
  let counted = 0
  const identity = Layer.mock(Identity, { byAddress: () => caller })
  const metering = Layer.mock(Metering, {
    admit: () =>
      Effect.sync((): Standing => {
        counted += 1
        return { usage: { used, limit: 10 }, window: { limit: 10, remaining: 10 - counted, resetSeconds: 60 } }
      })
  })
  const admission = yield* Effect.provide(Admission.make, Layer.merge(identity, metering))
  return { ...admission, counted: () => counted, use: (units: number) => (used = units) }
})

const newCall = (): Admission.Call => ({
  credential: { _tag: "Address", address: "192.0.2.1" },
  standing: MutableRef.make<Standing | null>(null)
})

/** A call that fails `times` times with PreconditionFailed, because the cached answer is outdated. */
const outdated = (times: number) => {
  let attempts = 0
  return {
    attempts: () => attempts,
    use: <A>(value: A) =>
      Effect.suspend(() => {
        attempts += 1
        return attempts <= times ? Effect.fail(new PreconditionFailed({ outdated: "answer" })) : Effect.succeed(value)
      })
  }
}

it.effect("Admission reads an outdated cached answer again and retries the call", function* () {
  const { withCaller } = yield* admissionAt(0)
  const { attempts, use } = outdated(2)
  let refreshed = 0
  const refresh = Effect.sync(() => (refreshed += 1))
  assert.strictEqual(yield* withCaller(newCall(), refresh, () => use("answer")), "answer")
  assert.deepStrictEqual([attempts(), refreshed], [3, 2])
})

it.effect("Admission fails after ten attempts if the cached answer is outdated at every attempt", function* () {
  const { withCaller } = yield* admissionAt(0)
  const { attempts, use } = outdated(Infinity)
  const failure = yield* Effect.flip(withCaller(newCall(), Effect.void, () => use("answer")))
  assert.strictEqual(failure._tag, "StoreUnavailable")
  assert.strictEqual(attempts(), 10)
})

it.effect("Admission counts a call once, even if the call is retried", function* () {
  const { count, countWork, counted, isCountedFirst, withCaller } = yield* admissionAt(0)
  const call = newCall()
  const { use } = outdated(3)
  assert.isFalse(isCountedFirst(call, caller))
  const standing = yield* withCaller(call, Effect.void, (current: Caller) => Effect.flatMap(countWork(call, current), use))
  assert.strictEqual(counted(), 1)
  assert.deepStrictEqual(MutableRef.get(call.standing), standing)
  assert.isTrue(isCountedFirst(call, caller))
  assert.deepStrictEqual(yield* count(call, caller), standing)
  assert.strictEqual(counted(), 1)
  assert.isFalse(isCountedFirst(newCall(), caller))
})

it.effect("Admission does not count background work of a key, and its append does not count it either", function* () {
  const { counted, countWork, isCountedFirst } = yield* admissionAt(0)
  const call = Admission.backgroundCall("key")
  assert.isTrue(isCountedFirst(call, caller))
  assert.deepStrictEqual(yield* countWork(call, caller), { usage: { used: 0, limit: 10 }, window: null })
  assert.strictEqual(counted(), 0)
})

it.effect("Admission counts a call before the call's append if the previous call of the same caller was refused", function* () {
  const { countWork, isCountedFirst, use, withCaller } = yield* admissionAt(10)
  const ask = (call: Admission.Call) => withCaller(call, Effect.void, (current) => countWork(call, current))
  yield* Effect.flip(ask(newCall()))
  assert.isTrue(isCountedFirst(newCall(), caller))
  use(9)
  yield* ask(newCall())
  assert.isFalse(isCountedFirst(newCall(), caller))
})

it.effect("Admission refuses a call beyond the quota, and reports the caller's usage and rate window", function* () {
  const { count, countWork, counted } = yield* admissionAt(10)
  const call = newCall()
  assert.strictEqual((yield* Effect.flip(countWork(call, caller)))._tag, "QuotaExceeded")
  assert.containSubset(MutableRef.get(call.standing), { usage: { used: 10 }, window: { remaining: 9 } })
  yield* count(newCall(), caller)
  assert.strictEqual(counted(), 2)
})

it.effect("Admission gives the standing of a client's call, also if the call failed or was interrupted", function* () {
  const { countWork } = yield* admissionAt(10)
  const { credential } = newCall()
  const seen: Array<Standing> = []
  const run = <A, E>(use: (call: Admission.Call) => Effect.Effect<A, E>) =>
    Effect.exit(Admission.counted(credential, use, (standing) => void seen.push(standing)))
  const full = { usage: { used: 10 }, window: { remaining: 9 } }
  assert.isTrue(Exit.isFailure(yield* run((call) => countWork(call, caller))))
  assert.containSubset(seen, [full])

  const interrupted = yield* Effect.forkChild(
    run((call) => Effect.andThen(Effect.exit(countWork(call, caller)), Effect.never)),
    { startImmediately: true }
  )
  yield* Fiber.interrupt(interrupted)
  assert.containSubset(seen, [full, { usage: { used: 10 } }])

  assert.deepStrictEqual(yield* run(() => Effect.succeed("answer")), Exit.succeed("answer"))
  assert.lengthOf(seen, 2)
})
