/**
 * Housekeeping of the database on every replica: creates partitions ahead of the head, deletes old rate windows and tokens,
 * and what uploads left behind.
 * Idempotent.
 */
import { Effect, Layer, Schedule, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import { logDefects } from "#domain/kernel/LogDefects.ts"
import { logId } from "#events/store/AppendCommand.ts"

const turnEvery = "1 minute"

/** Maximum rows per DELETE, so that it stays short, and maximum repetitions while there are more. */
const sweepMax = 5_000
const sweepsMax = 100

const makeTurn = Effect.map(SqlClient.SqlClient, (sql) => {
  const sweepOnce = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({ swept: Schema.Int }),
    execute: () => sql`SELECT vatproof.sweep_limits(${sweepMax}) AS swept`
  })
  const sweep = sweepOnce(undefined).pipe(
    Effect.repeat({ until: ({ swept }) => swept < sweepMax, times: sweepsMax - 1 }),
    Effect.catchTag(["SchemaError", "NoSuchElementError"], Effect.die)
  )
  // Tokens are kept long after they expire, so that an expired one can be told from an unknown one.
  const deleteTokens = sql`DELETE FROM vatproof.mail_tokens WHERE token_sha256 = ANY (ARRAY(
    SELECT token_sha256 FROM vatproof.mail_tokens WHERE issued_at < now() - interval '90 days' ORDER BY issued_at LIMIT ${sweepMax}))`

  // No upload takes an hour.
  const deleteUploads = sql`DELETE FROM vatproof.uploads WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM vatproof.uploads WHERE batch_id IS NULL AND spooled_at < now() - interval '1 hour' ORDER BY spooled_at LIMIT ${sweepMax}))`

  const parts: ReadonlyArray<Effect.Effect<unknown, SqlError>> = [
    sql`SELECT vatproof.ensure_partitions(${logId}::smallint)`,
    sweep,
    deleteTokens,
    deleteUploads
  ]
  const warn = (error: SqlError) => Effect.logWarning("Housekeeping failed; retrying in a minute", error)
  // A failed part does not stop the others.
  return Effect.forEach(parts, (part) => Effect.catchTag(part, "SqlError", warn), { discard: true }).pipe(
    logDefects("Housekeeping failed; retrying in a minute")
  )
})

/** Runs every minute. The next iteration repeats a failed one. */
export const layer = Layer.effectDiscard(
  Effect.flatMap(makeTurn, (iteration) => iteration.pipe(Effect.repeat(Schedule.spaced(turnEvery)), Effect.forkScoped))
)
