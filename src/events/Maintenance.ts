/**
 * Housekeeping of the database, each minute on every replica. It creates partitions before the log needs them, and deletes old rate
 * windows, the tokens of old mails, and abandoned uploads.
 */
import { Effect, Layer, Schedule, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import { logDefects } from "#domain/telemetry/LogDefects.ts"
import { logId } from "#events/log/store/AppendCommand.ts"

const turnEvery = "1 minute"

/** Maximum number of rows that one DELETE deletes, so that it stays short. */
const sweepMax = 5_000
/** Maximum number of DELETEs of rate windows per iteration. */
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
  // Tokens of mails are kept for 90 days, so that the response to an expired token differs from the response to an unknown token.
  const deleteTokens = sql`DELETE FROM vatproof.mail_tokens WHERE token_sha256 = ANY (ARRAY(
    SELECT token_sha256 FROM vatproof.mail_tokens WHERE issued_at < now() - interval '90 days' ORDER BY issued_at LIMIT ${sweepMax}))`

  // An upload that was not accepted within an hour is abandoned.
  const deleteUploads = sql`DELETE FROM vatproof.uploads WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM vatproof.uploads WHERE batch_id IS NULL AND spooled_at < now() - interval '1 hour' ORDER BY spooled_at LIMIT ${sweepMax}))`

  const parts: ReadonlyArray<Effect.Effect<unknown, SqlError>> = [
    sql`SELECT vatproof.ensure_partitions(${logId}::smallint)`,
    sweep,
    deleteTokens,
    deleteUploads
  ]
  const warn = (error: SqlError) =>
    Effect.logWarning("Deleting expired rows or creating partitions in the database failed; retrying in a minute", error)
  // If one part of the housekeeping fails, the other parts still run.
  return Effect.forEach(parts, (part) => Effect.catchTag(part, "SqlError", warn), { discard: true }).pipe(
    logDefects("Deleting expired rows or creating partitions in the database failed; retrying in a minute")
  )
})

/** Runs the housekeeping every minute. A failed part is retried in the next minute. */
export const layer = Layer.effectDiscard(
  Effect.flatMap(makeTurn, (iteration) => iteration.pipe(Effect.repeat(Schedule.spaced(turnEvery)), Effect.forkScoped))
)
