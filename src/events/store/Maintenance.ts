/** Housekeeping of the database, on every replica and harmless when repeated: partitions ahead of the head, old windows and tokens away. */
import { Effect, Layer, Schedule, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import { logDefects } from "#domain/kernel/LogDefects.ts"
import { logId } from "#events/store/AppendCommand.ts"

const turnEvery = "1 minute"

/** Rows of a table that one statement removes at most, so that it stays short; while there are more it is repeated, up to so often. */
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
  // Long after it expired a token is still told apart from one that never was; then it is forgotten.
  const forgetTokens = sql`DELETE FROM vatproof.mail_tokens WHERE token_sha256 = ANY (ARRAY(
    SELECT token_sha256 FROM vatproof.mail_tokens WHERE issued_at < now() - interval '90 days' ORDER BY issued_at LIMIT ${sweepMax}))`

  const parts: ReadonlyArray<Effect.Effect<unknown, SqlError>> = [
    sql`SELECT vatproof.ensure_partitions(${logId}::smallint)`,
    sweep,
    forgetTokens
  ]
  const warn = (error: SqlError) => Effect.logWarning("Housekeeping failed; it is tried again in a minute", error)
  // One that fails is no reason to leave out the others.
  return Effect.forEach(parts, (part) => Effect.catchTag(part, "SqlError", warn), { discard: true }).pipe(
    logDefects("Housekeeping stumbled; it goes on in a minute")
  )
})

/** Runs now and then every minute; a failed turn is repeated by the next one. */
export const layer = Layer.effectDiscard(
  Effect.flatMap(makeTurn, (turn) => turn.pipe(Effect.repeat(Schedule.spaced(turnEvery)), Effect.forkScoped))
)
