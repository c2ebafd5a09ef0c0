import { Clock, Deferred, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import * as GroupCommit from "#events/log/store/GroupCommit.ts"
import { assert, it } from "#test/support/Test.ts"

/** Starts a group commit whose first batch waits for `go`. */
const held = Effect.gen(function* () {
  const batches: Array<ReadonlyArray<number>> = []
  const begun = yield* Deferred.make<void>()
  const go = yield* Deferred.make<void>()
  const join = yield* GroupCommit.make<number, number, never>({
    run: Effect.fnUntraced(function* (inputs) {
      batches.push(inputs)
      yield* Deferred.succeed(begun, undefined)
      yield* Deferred.await(go)
      return inputs.map((input) => Exit.succeed(input * 2))
    }),
    maxWaiting: 3
  })
  const ask = (input: number) => Effect.forkScoped(join(input), { startImmediately: true })
  const first = yield* ask(1)
  yield* Deferred.await(begun)
  return { ask, batches, first, go: Deferred.succeed(go, undefined) }
})

it.effect(
  "a group commit processes all waiting inputs together, and returns to each caller the result of that caller's input",
  function* () {
    const { ask, batches, first, go } = yield* held
    const others = [yield* ask(2), yield* ask(3)]
    yield* go
    assert.deepStrictEqual(yield* Effect.forEach([first, ...others], Fiber.join), [2, 4, 6])
    assert.deepStrictEqual(batches, [[1], [2, 3]])
  }
)

it.effect("a group commit rejects a caller beyond the maximum number of waiting callers", function* () {
  const { ask, go } = yield* held
  const waiting = [yield* ask(2), yield* ask(3), yield* ask(4)]
  assert.deepStrictEqual(yield* Fiber.await(yield* ask(5)), Exit.fail(new StoreUnavailable({})))
  yield* go
  assert.deepStrictEqual(yield* Effect.forEach(waiting, Fiber.join), [4, 6, 8])
})

it.effect("a group commit rejects a caller whose input has waited for 3 seconds, and does not process that input", function* () {
  const { ask, batches, first, go } = yield* held
  const early = yield* ask(2)
  yield* TestClock.adjust("2 seconds")
  const late = yield* ask(3)
  yield* TestClock.adjust("1100 millis")
  yield* go
  assert.strictEqual(yield* Fiber.join(first), 2, "the batch in flight completes")
  assert.deepStrictEqual(yield* Fiber.await(early), Exit.fail(new StoreUnavailable({})))
  assert.strictEqual(yield* Fiber.join(late), 6)
  assert.deepStrictEqual(batches, [[1], [3]])
  assert.strictEqual(yield* Clock.currentTimeMillis, 3_100)
})

it.effect(
  "a group commit returns a result to every other caller, including later callers, even if the callback of one caller throws",
  function* () {
    const { ask, first, go } = yield* held
    first.addObserver(() => assert.fail("this caller throws"))
    const beside = yield* ask(2)
    yield* go
    assert.strictEqual(yield* Fiber.join(beside), 4)
    assert.strictEqual(yield* Effect.flatMap(ask(3), Fiber.join), 6)
  }
)
