import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Ref } from "effect"
import { TestClock } from "effect/testing"
import * as Pacer from "#events/log/database/Pacer.ts"

/** Returns the start of each batch of an iteration, in ms. A batch takes `takesMs`. */
const beginnings = Effect.fnUntraced(function* (makePace: Effect.Effect<Pacer.Pacer>, all: number, takesMs: number) {
  const began = yield* Ref.make<ReadonlyArray<number>>([])
  const turn = Effect.gen(function* () {
    const pace = yield* makePace
    for (let done = 0; done < all; done += pace.batchSize) {
      yield* pace.wait(done, all)
      const now = yield* Clock.currentTimeMillis
      yield* Ref.update(began, (before) => [...before, now])
      yield* Effect.delay(Effect.void, takesMs)
    }
  })
  yield* Effect.forkChild(turn)
  yield* TestClock.adjust("1 minute")
  return yield* Ref.get(began)
})

describe("Pacer, which spreads background work over time,", () => {
  it.effect("spreads the events of one iteration, in groups, evenly over less than a second", () =>
    Effect.map(beginnings(Pacer.evenly(10), 40, 5), (began) => assert.deepStrictEqual(began, [0, 200, 400, 600]))
  )

  it.effect("starts a small iteration, whose events fit into one group, at once", () =>
    Effect.map(beginnings(Pacer.evenly(10), 3, 5), (began) => assert.deepStrictEqual(began, [0]))
  )

  it.effect("starts a group of events without waiting if the groups before it took too long", () =>
    Effect.map(beginnings(Pacer.evenly(10), 40, 300), (began) => assert.deepStrictEqual(began, [0, 300, 600, 900]))
  )

  it.effect("does not wait between the groups of events of a backlog", () =>
    Effect.map(beginnings(Effect.succeed(Pacer.atOnce(10)), 40, 5), (began) => assert.deepStrictEqual(began, [0, 5, 10, 15]))
  )
})
