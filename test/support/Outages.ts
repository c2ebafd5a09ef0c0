/** Outages of the database and of the sources. They move the clock of a replica ahead, so that no test waits for a timeout. */
import { Effect, Fiber, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import type { Replica } from "#test/support/RunningService.ts"

/** Waits until a replica finds its sources operational. Moves its clock ahead by the minutes that this takes. */
export const recovered = ({ get, travel }: Replica) =>
  Effect.andThen(travel("20 seconds"), get("/v1/status")).pipe(
    Effect.repeat({
      until: ({ text }) => !/"sources":.*"(?:degraded|unavailable)".*"member_states"/u.test(text),
      schedule: Schedule.spaced("10 millis")
    }),
    Effect.timeout("10 seconds")
  )

/** Runs requests to a replica while a table is locked, and returns their responses. The queries that wait for the table time out at once. */
export const whileLocked = Effect.fnUntraced(function* <A, E, R>(
  replica: Replica,
  table: string,
  requests: Effect.Effect<A, E, R>
) {
  const sql = yield* SqlClient.SqlClient
  const waiting = sql`SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`
  return yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql`LOCK TABLE ${sql(`vatproof.${table}`)}`
      const fiber = yield* Effect.forkChild(requests)
      yield* Effect.repeat(waiting, { until: (rows) => rows.length > 0, schedule: Schedule.spaced("2 millis") })
      const isDone = Effect.sync(() => fiber.pollUnsafe() !== undefined)
      yield* Effect.repeat(Effect.andThen(replica.travel("5 seconds"), isDone), {
        until: (done) => done,
        schedule: Schedule.spaced("10 millis")
      })
      return yield* Fiber.join(fiber)
    })
  )
})
