/** Waits until a service has finished its background work, so that it does not slow the next measurement. */
import { Effect, type Redacted, Schedule, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import * as Postgres from "#infra/postgres/Postgres.ts"

const isSettled = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const find = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({ settled: Schema.Boolean }),
    execute: () => sql`SELECT l.next_position <= coalesce((SELECT max(size) FROM vatproof.checkpoints), 0)
      AND l.next_position <= coalesce((SELECT min(position) FROM vatproof.projections), 0) AS settled FROM vatproof.logs l`
  })
  return (yield* find(undefined)).settled
})

/** Waits until all events are signed and processed by all projections. */
export const wait = (url: Redacted.Redacted) =>
  isSettled.pipe(
    Effect.repeat({ until: (settled) => settled, schedule: Schedule.spaced("100 millis") }),
    // Long enough for the notary to sign a generated log of ten million events.
    Effect.timeout("1 hour"),
    Effect.provide(Postgres.layerAdministrator({ url, maxConnections: 1 }), { local: true })
  )
