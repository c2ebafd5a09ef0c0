/**
 * Reads rows with the pool of the test:
 *
 *     const { head } = yield* Rows.one({ head: Schema.Int }, (sql) => sql`SELECT next_position::int AS head FROM vatproof.logs`)
 */
import { Effect, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"

type Query = (sql: SqlClient.SqlClient) => Effect.Effect<ReadonlyArray<unknown>, SqlError>

/** Returns all rows of a query, decoded by their fields. */
export const all = <const Fields extends Schema.Struct.Fields>(fields: Fields, query: Query) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    SqlSchema.findAll({ Request: Schema.Void, Result: Schema.Struct(fields), execute: () => query(sql) })(undefined)
  )

/** Returns the first row of a query, decoded by its fields. */
export const one = <const Fields extends Schema.Struct.Fields>(fields: Fields, query: Query) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    SqlSchema.findOne({ Request: Schema.Void, Result: Schema.Struct(fields), execute: () => query(sql) })(undefined)
  )
