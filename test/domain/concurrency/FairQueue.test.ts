import { Effect, Fiber } from "effect"
import * as FairQueue from "#domain/concurrency/FairQueue.ts"
import { assert, it } from "#test/support/Test.ts"

it.effect("admitted work of one key leaves places to other keys, and all together stays below the capacity", function* () {
  const { admit } = yield* FairQueue.make({ concurrency: 3, capacity: 3, perKey: 2 })
  const waiting = { a: 0, b: 0 }
  const wait = (key: "a" | "b") =>
    admit(
      key,
      Effect.andThen(
        Effect.sync(() => (waiting[key] += 1)),
        Effect.never
      ),
      () => Effect.void
    )
  const fibers = yield* Effect.forEach(["a", "a", "a", "b", "b"] as const, (key) =>
    Effect.forkChild(wait(key), { startImmediately: true })
  )
  assert.deepStrictEqual(waiting, { a: 2, b: 1 })
  yield* Effect.forEach(fibers, Fiber.interrupt)
  yield* Effect.forkChild(wait("a"), { startImmediately: true })
  assert.strictEqual(waiting.a, 3)
})
