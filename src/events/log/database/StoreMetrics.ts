/** Metrics of queries, the event log, and the work that follows the log. */
import { Clock, Effect, Metric } from "effect"
import * as Metrics from "#domain/telemetry/Metrics.ts"

/** Upper limits of the histogram buckets: `appendBoundaries` in seconds, `batchBoundaries` in commands. */
const appendBoundaries = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const batchBoundaries = [1, 2, 5, 10, 20, 50, 100, 200, 500]

export const appendBatchSize = Metrics.histogram("vatproof.append.batch.size", batchBoundaries, {
  unit: "{command}",
  description: "Commands stored in one round trip to the log"
})()

/**
 * The attribute `vatproof.append.way` is `whole` if the database accepted all commands of a round trip together, and `each` if it
 * decided each command individually.
 */
const appendedBatches = Metrics.counter(
  "vatproof.append.batches",
  {
    unit: "{batch}",
    description: "Round trips, by whether the database accepted all commands at once or decided each one individually"
  },
  { "vatproof.append.way": ["whole", "each"] }
)
export const wholeBatches = appendedBatches({ "vatproof.append.way": "whole" })
export const decidedBatches = appendedBatches({ "vatproof.append.way": "each" })

export const appendWait = Metrics.histogram("vatproof.append.wait.duration", appendBoundaries, {
  unit: "s",
  description: "Time that a command waited until its append to the log began"
})()

export const appendDuration = Metrics.histogram("vatproof.append.duration", appendBoundaries, {
  unit: "s",
  description: "Duration of an append to the log, including retries"
})()

/** Attributes: `db.system.name`, and `error.type` of a failed query. */
export const queryDuration = Metrics.histogram("db.client.operation.duration", appendBoundaries, {
  unit: "s",
  description: "Duration of a query, including the wait for a connection and retries"
})

export const activeQueries = Metrics.upDownCounter("vatproof.db.queries.active", {
  unit: "{query}",
  description:
    "Queries that wait for a connection or an answer; if there are more queries than connections, some wait for a connection"
})()

export const databaseAvailable = Metrics.gauge("vatproof.database.available", {
  unit: "{database}",
  description:
    "1 while the database answers this replica, 0 while the replica rejects requests because the database is unavailable"
})()

/** Attribute: `vatproof.projection`, the name of the projection. */
export const projectionLag = Metrics.gauge("vatproof.projection.lag", {
  unit: "{event}",
  description: "Events of the log that a projection has not applied yet"
})

export const notaryLag = Metrics.gauge("vatproof.notary.lag", {
  unit: "{event}",
  description: "Events of the log that no checkpoint covers"
})()

export const notaryAge = Metrics.gauge("vatproof.notary.checkpoint.age", {
  unit: "s",
  description: "Age of the newest checkpoint; relevant only while events wait for a checkpoint"
})()

export const logSize = Metrics.gauge("vatproof.log.size", { unit: "{event}", description: "Events in the log" })()

export const outboxAge = Metrics.gauge("vatproof.outbox.age", {
  unit: "s",
  description: "Age of the oldest undelivered mail; 0 if all are delivered"
})()

export const outboxWaiting = Metrics.gauge("vatproof.outbox.waiting", {
  unit: "{mail}",
  description: "Undelivered mails"
})()

/** Attribute `vatproof.task.state`: `waiting` for the next attempt, `running`, or paused for the `quota` of the API key. */
export const tasksOpen = Metrics.gauge("vatproof.tasks.open", {
  unit: "{task}",
  description: "Accepted validations that wait for their answer"
})

export const tasksAge = Metrics.gauge("vatproof.tasks.age", {
  unit: "s",
  description:
    "Age of the oldest accepted validation that waits for its answer and is not paused for a quota; 0 without such a validation"
})()

/** Measures the duration of an effect, whether it succeeds, fails or is interrupted. */
export const timed = <A, E, R>(duration: Metric.Histogram<number>, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Clock.currentTimeNanos, (started) =>
    Effect.onExit(effect, () =>
      Effect.flatMap(Clock.currentTimeNanos, (ended) => Metric.update(duration, Number(ended - started) / 1e9))
    )
  )
