/** Waits for what a service still does after its last answer, so that the next one to be measured has the machine for itself. */
import { Effect, type Redacted, Schedule, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import * as Postgres from "#infra/postgres/Postgres.ts"

const look = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const find = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({ settled: Schema.Boolean }),
    execute: () => sql`SELECT l.next_position <= coalesce((SELECT max(size) FROM vatproof.checkpoints), 0)
      AND l.next_position <= coalesce((SELECT min(position) FROM vatproof.projections), 0) AS settled FROM vatproof.logs l`
  })
  return (yield* find(undefined)).settled
})

/** All events are signed and every projection has seen them. */
export const until = (url: Redacted.Redacted) =>
  look.pipe(
    Effect.repeat({ until: (settled) => settled, schedule: Schedule.spaced("100 millis") }),
    // A log of ten million events that were made up has to be signed first.
    Effect.timeout("1 hour"),
    Effect.provide(Postgres.layerAdministrator({ url, maxConnections: 1 }), { local: true })
  )
