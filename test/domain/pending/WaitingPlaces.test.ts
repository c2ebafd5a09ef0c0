import { Effect, Fiber } from "effect"
import * as WaitingPlaces from "#domain/pending/WaitingPlaces.ts"
import { assert, it } from "#test/support/Test.ts"

it.effect("waiting clients of one key leave places to other keys, and all together stay below the maximum", function* () {
  const place = WaitingPlaces.make({ inAll: 3, perKey: 2 })
  const waiting = { a: 0, b: 0 }
  const wait = (key: "a" | "b") =>
    place(
      key,
      Effect.andThen(
        Effect.sync(() => (waiting[key] += 1)),
        Effect.never
      )
    )
  const fibers = yield* Effect.forEach(["a", "a", "a", "b", "b"] as const, (key) =>
    Effect.forkChild(wait(key), { startImmediately: true })
  )
  assert.deepStrictEqual(waiting, { a: 2, b: 1 })
  yield* Effect.forEach(fibers, Fiber.interrupt)
  yield* Effect.forkChild(wait("a"), { startImmediately: true })
  assert.strictEqual(waiting.a, 3)
})
