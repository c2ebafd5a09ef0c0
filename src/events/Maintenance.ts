/** Housekeeping of the database, on every replica and harmless when repeated: partitions ahead of the head, old windows and tokens away. */
import { Effect, Layer, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { logId } from "#events/Append.ts"

/** At most this many ended windows a turn and table, so that a turn stays short. */
const sweepMax = 5_000

const turn = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`SELECT vatproof.ensure_partitions(${logId}::smallint)`
  for (const table of ["rate_windows", "rate_places"]) {
    // Asked twice, because it may have begun anew in between.
    yield* sql`DELETE FROM vatproof.${sql(table)} WHERE ends_at < now() - interval '1 minute' AND bucket IN (
      SELECT bucket FROM vatproof.${sql(table)} WHERE ends_at < now() - interval '1 minute' LIMIT ${sweepMax})`
  }
  // Long after it expired a token is still told apart from one that never was; then it is forgotten.
  yield* sql`DELETE FROM vatproof.verification_tokens WHERE token_sha256 IN (
    SELECT token_sha256 FROM vatproof.verification_tokens WHERE issued_at < now() - interval '90 days' LIMIT ${sweepMax})`
})

/** Runs now and then every minute; a failed turn is repeated by the next one. */
export const layer = Layer.effectDiscard(
  turn.pipe(
    Effect.catchTag("SqlError", (error) => Effect.logWarning("Housekeeping failed; it is tried again in a minute", error)),
    Effect.repeat(Schedule.spaced("1 minute")),
    Effect.forkScoped
  )
)
