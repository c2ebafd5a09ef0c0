/** Counts the round trips to the database, to test that waiting callers share them. */
import { Effect, Layer, Metric } from "effect"
import * as StoreMetrics from "#events/log/database/StoreMetrics.ts"

const succeeded = Effect.map(Metric.value(StoreMetrics.queryDuration({ "db.system.name": "postgresql" })), ({ count }) => count)

/** Metrics of its own for a test, because the services of other tests in this process count their round trips, too. */
export const layer = Layer.sync(Metric.MetricRegistry, () => new Map())

/** Returns the number of successful round trips during an effect. */
export const during = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const before = yield* succeeded
    yield* effect
    return (yield* succeeded) - before
  })
