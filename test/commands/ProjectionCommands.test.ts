import { Effect } from "effect"
import { command } from "#test/support/CommandLine.ts"
import * as LoginRole from "#test/support/LoginRole.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { tamper } from "#test/support/Tampering.ts"
import { assert, layer } from "#test/support/Test.ts"
import { TestDatabase } from "#test/support/TestDatabase.ts"

layer(RunningService.layerGround, { excludeTestServices: true })("`vatproof projections`", (it) => {
  it.effect("rebuilds projections, and lists them with their lag", function* () {
    yield* MigratedDatabase.openLog
    yield* command("auditor", "add", "tax office")
    yield* MigratedDatabase.execute("DROP TABLE vatproof.event_index CASCADE")
    yield* MigratedDatabase.execute("UPDATE vatproof.auditors SET expires_at = expires_at + interval '1 year'")
    const rebuilt = (yield* command("projections", "rebuild", "--all")).output
    assert.match(rebuilt, /^auditors is corrected: it had 0 missing, 0 surplus and 1 different rows.$/mu)
    assert.match(rebuilt, /^event_index matches the events/mu)
    assert.match(
      yield* RunningService.everythingLogged,
      /^log ProjectionCorrected \{"different":1,"missing":0,"projection":"auditors","surplus":0\} \{"actor":"[^"]+"/mu
    )
    yield* MigratedDatabase.execute("SELECT count(*) FROM audit.receipts")
    assert.match(
      (yield* command("projections", "rebuild", "auditors")).output,
      /^auditors matches the events: nothing was changed.$/u
    )
    const { output } = yield* command("projections", "list")
    assert.match(output, /event_index +asynchronous +1 +\d+ +\d+ +current/u)
    assert.match(output, /accounts +inline +1 +\d+ +0 +current/u)
    assert.match(output, /tasks +inline +1 +\d+ +0 +current/u)
    assert.match(output, /^Accepted validations: 0 waiting, 0 running, 0 paused because their quota is used up\.$/mu)
    assert.match(
      (yield* command("projections", "rebuild", "nothing")).failure ?? "",
      /The projections are: streams, .*event_index/u
    )
    assert.match((yield* command("projections", "rebuild")).failure ?? "", /or --all/u)
  })

  it.effect("shows for how long a stalled projection has applied no event", function* () {
    yield* command("auditor", "add", "tax office")
    const set = (values: string) => MigratedDatabase.execute(`UPDATE vatproof.projections SET ${values}`)
    yield* set("position = 0, moved_at = now() - interval '1 hour' WHERE name = 'event_index'")
    assert.match(
      (yield* command("projections", "list")).output,
      /event_index +asynchronous +1 +0 +\d+ +current/u,
      "the event is younger"
    )
    yield* tamper("UPDATE vatproof.events SET recorded_at = now() - interval '1 hour'")
    assert.match((yield* command("projections", "list")).output, /event_index +asynchronous +1 +0 +\d+ +stalled for 36\d\d s/u)
  })

  it.effect(
    "rejects a rebuild with the database role of the service, and asks for the administrator's DATABASE_URL",
    function* () {
      const { login, url } = yield* LoginRole.make
      yield* MigratedDatabase.execute(`GRANT vatproof_service TO ${login}`)
      const database = yield* TestDatabase
      const { failure } = yield* command("projections", "rebuild", "event_index").pipe(
        Effect.provideService(TestDatabase, { ...database, url })
      )
      assert.match(failure ?? "", /administrator.s DATABASE_URL/u)
    }
  )
})
