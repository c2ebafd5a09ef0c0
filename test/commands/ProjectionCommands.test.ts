import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { command } from "#test/support/CommandLine.ts"
import * as LoginRole from "#test/support/LoginRole.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { tamper } from "#test/support/Tampering.ts"
import { TestDatabase } from "#test/support/TestDatabase.ts"

layer(RunningService.layer(), { excludeTestServices: true })("vatproof projections", (it) => {
  it.effect("lists projections with their lag, and makes one anew while the service runs", () =>
    Effect.gen(function* () {
      assert.match((yield* command("projections", "list")).output, /event_places +1 +\d+ +\d+ +current/u)
      assert.match(
        (yield* command("projections", "rebuild", "event_places")).output,
        /^event_places is made anew from \d+ events/u
      )
      assert.match((yield* command("projections", "rebuild", "nothing")).failure ?? "", /there are: event_places/u)
    })
  )

  it.effect("says of one that nobody can move how long it has stood still", () =>
    Effect.gen(function* () {
      yield* command("auditor", "add", "tax office")
      const set = (values: string) => MigratedDatabase.execute(`UPDATE vatproof.projections SET ${values}`)
      // Of newer rules than the service's, which therefore leaves it alone.
      yield* set("version = version + 1, position = 0, moved_at = now() - interval '1 hour'")
      assert.match((yield* command("projections", "list")).output, /event_places +2 +0 +\d+ +current/u, "the event is younger")
      yield* tamper("UPDATE vatproof.events SET recorded_at = now() - interval '1 hour'")
      assert.match((yield* command("projections", "list")).output, /event_places +2 +0 +\d+ +not moved for 36\d\d s/u)
      yield* set("version = version - 1")
    })
  )

  it.effect("says who makes one anew where the service's role may not", () =>
    Effect.gen(function* () {
      const { login, url } = yield* LoginRole.make
      yield* MigratedDatabase.execute(`GRANT vatproof_service TO ${login}`)
      const { name } = yield* TestDatabase
      const { failure } = yield* command("projections", "rebuild", "event_places").pipe(
        Effect.provideService(TestDatabase, { name, url })
      )
      assert.match(failure ?? "", /DATABASE_URL of the administrator/u)
    }).pipe(Effect.scoped)
  )
})
