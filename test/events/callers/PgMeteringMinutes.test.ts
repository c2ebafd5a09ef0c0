import { Effect, Result } from "effect"
import type { Caller } from "#domain/callers/Caller.ts"
import { minuteBucket } from "#domain/callers/RateLimiter.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { anonymous, countedOf, identified, replica } from "#test/support/MeteredCallers.ts"
import { assert, layer } from "#test/support/Test.ts"

const times = <A>(count: number, make: (index: number) => A) => Array.from({ length: count }, (_, index) => make(index))
const ascending = (numbers: ReadonlyArray<number>) => numbers.toSorted((a, b) => a - b)

layer(MigratedDatabase.layer, { excludeTestServices: true })("the limit per minute", (it) => {
  it.effect("counts each call once, whichever of two replicas receives it", function* () {
    const both = [yield* replica, yield* replica] as const
    const caller = yield* identified("c1", { perMinute: 30 })
    const calls = times(100, (index) => Effect.result(both[index % 2 === 0 ? 0 : 1].admit(caller)))
    const outcomes = yield* Effect.all(calls, { concurrency: "unbounded" })
    const remaining = outcomes.map((outcome) =>
      Result.match(outcome, {
        onSuccess: ({ window }) => window?.remaining,
        onFailure: (refusal) => (refusal._tag === "RateLimitExceeded" ? refusal.standing?.window?.remaining : undefined)
      })
    )
    assert.deepStrictEqual(
      ascending(remaining.map((count) => count ?? Number.NaN)),
      times(100, (index) => index - 70)
    )
  })

  it.effect("counts the concurrent calls of each caller separately", function* () {
    const { admit } = yield* replica
    const outdated = { ...(yield* identified("c2")), epoch: -1 }
    const callers: ReadonlyArray<Caller> = [yield* identified("c3"), yield* identified("c4"), anonymous("c5", 100, 100), outdated]
    const calls = times(40, (index) => callers[index % 4]).flatMap((caller) =>
      caller === undefined ? [] : [Effect.map(Effect.result(admit(caller)), (outcome) => ({ caller, outcome }))]
    )
    const outcomes = yield* Effect.all(calls, { concurrency: "unbounded" })
    for (const caller of callers) {
      const own = outcomes.filter((one) => one.caller === caller).map(({ outcome }) => outcome)
      if (caller === outdated) {
        assert.isTrue(own.every(Result.isFailure))
        assert.strictEqual(yield* countedOf(caller), 0)
        continue
      }
      assert.deepStrictEqual(
        ascending(own.map((outcome) => (Result.isSuccess(outcome) ? (outcome.success.window?.remaining ?? 0) : Number.NaN))),
        times(10, (index) => caller.perMinute - 10 + index)
      )
    }
  })

  it.effect("begins a new minute with the first call after the previous minute has ended", function* () {
    const { admit } = yield* replica
    const caller = yield* identified("c6", { perMinute: 5 })
    const window = Effect.map(admit(caller), (standing) => standing.window)
    for (const remaining of [4, 3]) assert.strictEqual((yield* window)?.remaining, remaining)
    const move = (to: string) =>
      MigratedDatabase.execute(`UPDATE vatproof.rate_windows SET ends_at = ${to} WHERE bucket = '${minuteBucket(caller)}'`)
    yield* move("ends_at - interval '30 s'")
    const halfway = yield* window
    assert.strictEqual(halfway?.remaining, 2)
    assert.isAtMost(halfway?.resetSeconds ?? Number.NaN, 30)
    yield* move("now()")
    assert.deepStrictEqual(yield* window, { limit: 5, remaining: 4, resetSeconds: 60 })
  })
})
