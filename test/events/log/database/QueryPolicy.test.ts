import { Deferred, Effect, Fiber } from "effect"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import { assert, it } from "#test/support/Test.ts"

it.effect(
  "the query policy rejects queries beyond the concurrency limit at once, and accepts a query again after a running query has ended",
  function* () {
    const answered = yield* Deferred.make<string>()
    const query = QueryPolicy.withRetry("3 seconds")(Deferred.await(answered))
    const waiting = yield* Effect.forEach(Array.from({ length: 1_000 }), () =>
      Effect.forkChild(query, { startImmediately: true })
    )
    assert.containSubset(yield* Effect.flip(query), {
      _tag: "StoreUnavailable",
      cause: "Too many database queries of this process are in flight"
    })
    const batch = yield* Effect.forkChild(QueryPolicy.withRetryForMany("3 seconds")(Deferred.await(answered)))
    const [first] = waiting
    if (first !== undefined) yield* Fiber.interrupt(first)
    const next = yield* Effect.forkChild(query, { startImmediately: true })
    yield* Deferred.succeed(answered, "answer")
    assert.strictEqual(yield* Fiber.join(next), "answer")
    assert.strictEqual(yield* Fiber.join(batch), "answer")
    yield* Fiber.awaitAll(waiting)
    assert.strictEqual(yield* query, "answer")
  }
)
