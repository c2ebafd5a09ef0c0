/** Counts the round trips to the database, to test that waiting callers share them. */
import { Effect, Metric } from "effect"
import * as StoreMetrics from "#events/database/StoreMetrics.ts"

const succeeded = Effect.map(Metric.value(StoreMetrics.queryDuration({ "db.system.name": "postgresql" })), ({ count }) => count)

/**
 * Round trips that the background jobs of other services in this process may make meanwhile. Callers that share nothing make many
 * more.
 */
export const ofOthers = 6

/** Returns the number of successful round trips of this process during an effect. */
export const during = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const before = yield* succeeded
    yield* effect
    return (yield* succeeded) - before
  })
