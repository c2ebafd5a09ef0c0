/** Counts the accepted validations that have no answer yet, by state. */
import { Effect, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { Int8 } from "#events/log/database/Rows.ts"

/**
 * Numbers of accepted validations without an answer: `waiting` for the next attempt, `running` on a replica, or paused because the
 * `quota` of their key is used up. `oldestMs` is the age in milliseconds of the oldest validation that is not paused; 0 if there is none.
 */
const Counts = Schema.Struct({ waiting: Int8, running: Int8, quota: Int8, oldestMs: Int8 })
export type TaskCounts = typeof Counts.Type

/** Creates the query that counts the accepted validations without a final answer. It counts at most 100,000 of them. */
export const makeRead = Effect.map(SqlClient.SqlClient, (sql) =>
  SqlSchema.findOne({
    Request: Schema.Void,
    Result: Counts,
    execute: () => sql`SELECT count(*) FILTER (WHERE NOT t.is_running AND t.failure IS DISTINCT FROM 'QUOTA') AS waiting,
        count(*) FILTER (WHERE t.is_running) AS running, count(*) FILTER (WHERE t.failure = 'QUOTA' AND NOT t.is_running) AS quota,
        coalesce(extract(epoch FROM clock_timestamp() - min(t.accepted_at) FILTER (WHERE t.failure IS DISTINCT FROM 'QUOTA')) * 1000, 0)::bigint AS "oldestMs"
      FROM (SELECT accepted_at, failure, claim IS NOT NULL AND due_at > clock_timestamp() AS is_running
        FROM vatproof.tasks WHERE closed_by IS NULL ORDER BY expires_at LIMIT 100000) t`
  })(undefined)
)
