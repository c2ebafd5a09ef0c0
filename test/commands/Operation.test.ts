import { Effect, Schema } from "effect"
import { userInfo } from "node:os"
import { command } from "#test/support/CommandLine.ts"
import { register, settings, showAccount, why } from "#test/support/Operations.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"
import * as Rows from "#test/support/Rows.ts"

layer(RunningService.layerShared(settings), { excludeTestServices: true })("operator commands", (it) => {
  it.effect("fail with a message of one sentence for an unknown account or API key", function* () {
    const asked = [
      ["account", "show", "unknown@example.com"],
      ["account", "plan", "unknown@example.com", "free", ...why],
      ["usage", "show", "unknown@example.com"]
    ]
    for (const args of asked) {
      const { failure } = yield* command(...args)
      assert.strictEqual(failure, 'There is no account with the email address, user_id or agent id "unknown@example.com"')
    }
    const { failure } = yield* command("key", "revoke", "00000000-0000-7000-8000-000000000000", ...why)
    assert.strictEqual(failure, 'There is no API key with the key_id "00000000-0000-7000-8000-000000000000"')
  })

  it.effect(
    "record the operator and the reason in their events; events of API requests have no operator and no reason",
    function* () {
      yield* register("who@example.com")
      const { keys, user_id } = yield* showAccount("who@example.com")
      yield* command("account", "plan", user_id, "starter", "--reason", "order 4711", "--by", "carol")
      yield* command("key", "revoke", keys[0]?.key_id ?? "?", "--reason", "abuse")
      yield* command("auditor", "add", "Finanzamt", "--account", user_id)
      const api = { source: "api", actor: null, reason: null, by: null }
      assert.deepStrictEqual(
        (yield* originsOf(user_id)).map(({ type, ...origin }) => [type, origin]),
        [
          ["AccountRegistered", api],
          ["ApiKeyIssued", api],
          ["AccountsShown", { source: "cli", actor: userInfo().username, reason: null, by: null }],
          ["PlanChanged", { source: "cli", actor: "carol", reason: "order 4711", by: null }],
          ["ApiKeyRevoked", { source: "cli", actor: userInfo().username, reason: "abuse", by: "operator" }],
          ["AuditorAdded", { source: "cli", actor: userInfo().username, reason: null, by: null }]
        ]
      )
    }
  )

  it.effect("reject a change of plan without a reason, or with personal data in the reason", function* () {
    const { user_id } = yield* Effect.andThen(register("reason@example.com"), showAccount("reason@example.com"))
    const refused = [
      [],
      ["--reason", " "],
      ["--reason", "a\u0007"],
      ["--reason", "x".repeat(201)],
      ["--reason", "told by ada@example.com"],
      ["--reason", "attack from 203.0.113.9"],
      ["--reason", "fine", "--by", "ada@example.com"]
    ]
    for (const args of refused) {
      const { failure } = yield* command("account", "plan", user_id, "starter", ...args)
      assert.isNotNull(failure, args.join(" "))
    }
    assert.strictEqual((yield* showAccount(user_id)).plan, "free")
  })

  it.effect("print a help text with examples", function* () {
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
})

const Origin = Schema.Struct({
  type: Schema.String,
  source: Schema.NullOr(Schema.String),
  actor: Schema.NullOr(Schema.String),
  reason: Schema.NullOr(Schema.String),
  by: Schema.NullOr(Schema.String)
})

/** Returns the type, the source, the actor and the reason of each event about an account. */
const originsOf = Effect.fnUntraced(function* (accountId: string) {
  return yield* Rows.all(
    Origin.fields,
    (sql) => sql`SELECT type, metadata::json ->> 'source' AS source, metadata::json ->> 'actor' AS actor,
        metadata::json ->> 'reason' AS reason, data::json ->> 'by' AS by
      FROM vatproof.events WHERE data::json ->> 'account_id' = ${accountId} ORDER BY position`
  )
})
