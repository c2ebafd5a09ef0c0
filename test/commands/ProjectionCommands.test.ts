import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { command } from "#test/support/CommandLine.ts"
import * as RunningService from "#test/support/RunningService.ts"

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
})
