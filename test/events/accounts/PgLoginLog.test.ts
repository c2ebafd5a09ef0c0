import { Context, Effect, Layer, Schema } from "effect"
import { LoginLog } from "#domain/accounts/login/LoginLog.ts"
import * as Logins from "#events/accounts/PgLoginLog.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { assert, layer } from "#test/support/Test.ts"
import * as Rows from "#test/support/Rows.ts"

const replica = Effect.map(Layer.build(Layer.fresh(Logins.layer)), Context.get(LoginLog))

const ada = "019371c0-5f00-7000-8000-0000000000ac"

/** Returns the number of events by type, and the sums of their counts. */
const recorded = Effect.gen(function* () {
  return yield* Rows.all(
    { type: Schema.String, events: Schema.Int, refused: Schema.Int, succeeded: Schema.Int },
    (sql) => sql`SELECT type, count(*)::int AS events, coalesce(sum((data::json ->> 'refused')::int), 0)::int AS refused,
        coalesce(sum((data::json ->> 'succeeded')::int), 0)::int AS succeeded
      FROM vatproof.events WHERE stream_id LIKE 'logins%' GROUP BY type ORDER BY type`
  )
})

layer(MigratedDatabase.layer, { excludeTestServices: true })("the log of logins", (it) => {
  it.effect("stores a limited number of events for single logins, and counts all further logins in summary events", function* () {
    yield* Effect.scoped(
      Effect.gen(function* () {
        const log = yield* replica
        for (let i = 0; i < 70; i += 1) yield* log.succeeded(ada)
        for (let i = 0; i < 3_000; i += 1) yield* log.refused(`anonymous-${i % 1_000}`, null)
        yield* log.refused("anonymous-1", ada)
      })
    )
    assert.deepStrictEqual(yield* recorded, [
      { type: "LoggedIn", events: 60, refused: 0, succeeded: 0 },
      // One summary event for the account, 500 for single clients, and one for all other clients.
      { type: "LoginsCounted", events: 502, refused: 3_001, succeeded: 10 }
    ])
  })
})
