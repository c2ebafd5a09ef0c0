/**
 * Housekeeping of the database, each minute on every replica. It creates partitions before the log needs them, and deletes old rate
 * windows, the tokens of old mails, and abandoned uploads.
 */
import { Effect, Layer, Schedule, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import * as Worker from "#domain/concurrency/Worker.ts"
import { logId } from "#events/log/store/AppendCommand.ts"

/** Maximum number of rows that one DELETE deletes, so that it stays short. */
const sweepMax = 5_000
/** Maximum number of DELETEs of rate windows per iteration. */
const sweepsMax = 100

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
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

  const pace = { schedule: Schedule.spaced("1 minute") }
  yield* Worker.loop("Creating partitions of the log", sql`SELECT vatproof.ensure_partitions(${logId}::smallint)`, pace)
  yield* Worker.loop("Deleting old rate windows", sweep, pace)
  yield* Worker.loop("Deleting the tokens of old mails", deleteTokens, pace)
  yield* Worker.loop("Deleting abandoned uploads", deleteUploads, pace)
})

export const layer = Layer.effectDiscard(make)
