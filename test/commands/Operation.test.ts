import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { command } from "#test/support/CommandLine.ts"
import { settings } from "#test/support/Operations.ts"
import * as RunningService from "#test/support/RunningService.ts"

layer(RunningService.layer(settings), { excludeTestServices: true })("every command of the operator", (it) => {
  it.effect("fails with one sentence when nobody is meant", () =>
    Effect.gen(function* () {
      const asked = [
        ["account", "show", "nobody@example.com"],
        ["account", "plan", "nobody@example.com", "free"],
        ["usage", "show", "nobody@example.com"]
      ]
      for (const args of asked) {
        const { failure } = yield* command(...args)
        assert.strictEqual(failure, 'There is no account with the email address or user_id "nobody@example.com"')
      }
      const { failure } = yield* command("key", "revoke", "00000000-0000-7000-8000-000000000000")
      assert.strictEqual(failure, 'There is no API key with the key_id "00000000-0000-7000-8000-000000000000"')
    })
  )

  it.effect("explains itself, with examples", () =>
    Effect.gen(function* () {
      const commands = [
        ["account", "list"],
        ["account", "show"],
        ["account", "plan"],
        ["key", "revoke"],
        ["usage", "show"],
        ["usage", "check"]
      ]
      for (const args of commands) {
        const { failure, output } = yield* command(...args, "--help")
        assert.isNull(failure)
        for (const heading of ["DESCRIPTION", "USAGE", "--json", "EXAMPLES", `vatproof ${args.join(" ")}`])
          assert.include(output, heading)
      }
    })
  )
})
