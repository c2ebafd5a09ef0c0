/**
 * Compares the schema of the database with the schema of this program. A forged function, view, trigger or operator could hide forged
 * rows, or forge events before they are signed.
 */
import { Effect, type Schema } from "effect"
import type { SqlClient } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import type { Findings } from "#events/log/verify/Findings.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"

/** Returns each object of the database that differs from the schema of this program, with what differs. */
export type Comparison = Effect.Effect<
  ReadonlyArray<{ readonly object: string; readonly message: string }>,
  SqlError | Schema.SchemaError,
  SqlClient.SqlClient
>

export const run = Effect.fn("SchemaAudit.run")(function* (comparison: Comparison, findings: Findings) {
  for (const { message, object } of yield* QueryPolicy.withRetry("30 seconds")(comparison))
    findings.addRow({ table: "schema", key: object, position: null }, message)
})
