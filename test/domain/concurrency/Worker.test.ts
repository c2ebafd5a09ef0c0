import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Logger, Queue, Schedule } from "effect"
import { TestClock } from "effect/testing"
import * as Worker from "#domain/concurrency/Worker.ts"
import { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** Runs a loop whose iterations have the given results; gives the levels and first texts of its log lines. */
const logOf = Effect.fnUntraced(function* (results: ReadonlyArray<Effect.Effect<void, unknown>>, pace: Worker.Pace) {
  const lines: Array<string> = []
  const capture = Logger.make(({ logLevel, message }) => {
    lines.push(`${logLevel}: ${String(Array.isArray(message) ? message[0] : message)}`)
  })
  const began = yield* Queue.unbounded<number>()
  let count = 0
  const iteration = Effect.suspend(() => {
    Queue.offerUnsafe(began, count)
    return results[count++] ?? Effect.never
  })
  yield* Worker.loop("Counting", iteration, pace).pipe(Effect.provideService(Logger.CurrentLoggers, new Set([capture])))
  const all = yield* Effect.forkChild(Queue.takeN(began, results.length + 1))
  yield* TestClock.adjust("1 hour")
  yield* Fiber.join(all)
  return lines
})

describe("Worker.loop", () => {
  it.effect("logs a failure and a defect, and goes on", () =>
    Effect.gen(function* () {
      const lines = yield* logOf([Effect.fail("no"), Effect.void, Effect.die("odd")], { schedule: Schedule.spaced("1 minute") })
      assert.deepStrictEqual(lines, [
        "Warn: Counting failed; it is repeated",
        "Error: Counting failed unexpectedly; it is repeated"
      ])
    }).pipe(Effect.scoped)
  )

  it.effect("goes on after an outage of the database, which the breaker logs", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* logOf([Effect.fail(new StoreUnavailable({}))], { afterFailure: "1 second" }), [])
    }).pipe(Effect.scoped)
  )

  it.effect("pauses after a failure", () =>
    Effect.gen(function* () {
      const began = yield* Queue.unbounded<number>()
      let count = 0
      const iteration = Effect.suspend(() => {
        Queue.offerUnsafe(began, count++)
        return count === 1 ? Effect.fail(new StoreUnavailable({})) : Effect.never
      })
      yield* Worker.loop("Counting", iteration, { afterFailure: "5 seconds" })
      yield* TestClock.adjust("4 seconds")
      assert.deepStrictEqual(yield* Queue.clear(began), [0])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Queue.clear(began), [1])
    }).pipe(Effect.scoped)
  )
})
