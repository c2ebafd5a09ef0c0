/** The calls of sources per hour, member state, source and outcome, as the signed events name them. */
import { Effect, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { logId } from "#events/log/store/AppendCommand.ts"
import * as Projection from "#events/log/projections/Projection.ts"

/** Name of the projection and of its table. */
export const sourceHours = "source_hours"

export const definition = Effect.map(SqlClient.SqlClient, (sql) => {
  const apply = SqlSchema.findOne({
    Request: Schema.Struct({ ...Projection.ProjectionBatch.fields, schema: Schema.String }),
    Result: Projection.Changes,
    execute: ({ from, schema, to }) => sql`WITH moved AS (
        INSERT INTO ${sql.literal(schema)}.source_hours AS p (log_id, hour, member_state, source, outcome, calls, ms_sum, ms_max, last_position)
        SELECT r.log_id, r.hour, r.member_state, r.source, r.outcome, r.calls, r.ms_sum, r.ms_max, r.last_position
        FROM vatproof.source_hours_rows(${logId}::smallint, ${from}::bigint, ${to}::bigint) r
        ON CONFLICT (log_id, hour, member_state, source, outcome) DO UPDATE SET calls = p.calls + excluded.calls,
          ms_sum = p.ms_sum + excluded.ms_sum, ms_max = greatest(p.ms_max, excluded.ms_max),
          last_position = greatest(p.last_position, excluded.last_position)
        RETURNING xmax = 0 AS inserted)
      SELECT count(*) FILTER (WHERE inserted) AS missing, 0::bigint AS surplus, count(*) FILTER (WHERE NOT inserted) AS different FROM moved`
  })
  return Projection.define({ name: sourceHours, version: 1, apply: (batch, schema) => apply({ ...batch, schema }) })
})
