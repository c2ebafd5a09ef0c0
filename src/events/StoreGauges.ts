/**
 * Updates the gauges of the lag of projections, notary and outbox, and of the waiting tasks. Every replica reads the values from the
 * tables, so that the lag also shows if a background job is stuck or does not run.
 */
import { Effect, Layer, Metric, Schedule, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import * as Worker from "#domain/concurrency/Worker.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import { Int8 } from "#events/log/database/Rows.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import * as StoreMetrics from "#events/log/database/StoreMetrics.ts"
import * as TaskCounts from "#events/pending/TaskCounts.ts"

const readEvery = "10 seconds"

const Row = Schema.Struct({ head: Int8, signed: Int8, signedAgoMs: Int8, mails: Int8, oldestMailMs: Int8 })
const Behind = Schema.Struct({ name: Schema.String, lag: Int8 })

const makeRead = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const readTasks = yield* TaskCounts.makeRead
  const find = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Row,
    execute: () => sql`SELECT l.next_position AS head, coalesce(c.size, 0) AS signed,
        coalesce(extract(epoch FROM clock_timestamp() - c.signed_at) * 1000, 0)::bigint AS "signedAgoMs",
        o.mails, o.oldest_mail_ms AS "oldestMailMs"
      FROM vatproof.logs l
      LEFT JOIN LATERAL (SELECT size, signed_at FROM vatproof.checkpoints WHERE log_id = l.log_id ORDER BY size DESC LIMIT 1) c ON true
      CROSS JOIN (SELECT count(*) AS mails,
          coalesce(extract(epoch FROM clock_timestamp() - min(requested_at)) * 1000, 0)::bigint AS oldest_mail_ms
        FROM vatproof.outbox WHERE settled_at IS NULL) o
      WHERE l.log_id = ${logId}`
  })
  const findBehind = SqlSchema.findAll({
    Request: Schema.Void,
    Result: Behind,
    execute: () => sql`SELECT p.name, l.next_position - p.position AS lag
      FROM vatproof.projections p JOIN vatproof.logs l ON l.log_id = p.log_id WHERE p.log_id = ${logId} AND p.position IS NOT NULL`
  })

  return Effect.gen(function* () {
    const row = yield* find(undefined)
    yield* Metric.update(StoreMetrics.logSize, row.head)
    yield* Metric.update(StoreMetrics.notaryLag, row.head - row.signed)
    yield* Metric.update(StoreMetrics.notaryAge, row.signedAgoMs / 1000)
    yield* Metric.update(StoreMetrics.outboxWaiting, row.mails)
    yield* Metric.update(StoreMetrics.outboxAge, row.oldestMailMs / 1000)
    const { oldestMs, ...states } = yield* readTasks
    yield* Metric.update(StoreMetrics.tasksAge, oldestMs / 1000)
    for (const [state, count] of Object.entries(states)) {
      yield* Metric.update(StoreMetrics.tasksOpen({ "vatproof.task.state": state }), count)
    }
    for (const { lag, name } of yield* findBehind(undefined)) {
      yield* Metric.update(StoreMetrics.projectionLag({ "vatproof.projection": name }), lag)
    }
  }).pipe(QueryPolicy.withRetry("0 millis"))
})

/** Updates the gauges every ten seconds. A failed read is retried in the next iteration. */
export const layer = Layer.effectDiscard(
  Effect.flatMap(makeRead, (read) =>
    Worker.loop("Reading the metrics of the log, the mails and the validations", read, { schedule: Schedule.spaced(readEvery) })
  )
)
