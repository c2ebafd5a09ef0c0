import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { command, commandJson } from "#test/support/CommandLine.ts"
import { Account, register, settings, showAccount, why } from "#test/support/Operations.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

const Accounts = Schema.Struct({ accounts: Schema.Array(Account), next_before: Schema.NullOr(Schema.String) })

const planChanges = (accountId: string) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) =>
      sql`SELECT data FROM vatproof.events WHERE stream_id = ${`account-${accountId}`} AND type = 'PlanChanged' ORDER BY position`
  ).pipe(Effect.map((rows) => rows.map(({ data }) => String(data))))

// Uses its own database, because the lists must not contain accounts of other test files.
layer(RunningService.layer(settings), { excludeTestServices: true })("vatproof", (it) => {
  it.effect("`account list` shows the newest accounts first, page by page", function* () {
    yield* register("list-1@example.com")
    yield* register("list-2@example.com")
    yield* register("list-3@example.com")
    const first = yield* commandJson(Accounts, "account", "list", "--limit", "2")
    assert.deepStrictEqual(
      first.accounts.map(({ email }) => email),
      ["list-3@example.com", "list-2@example.com"]
    )
    const second = yield* commandJson(Accounts, "account", "list", "--limit", "2", "--before", first.next_before ?? "")
    assert.strictEqual(second.accounts[0]?.email, "list-1@example.com")
    yield* command("account", "plan", "list-1@example.com", "enterprise", ...why)
    const enterprise = yield* commandJson(Accounts, "account", "list", "--plan", "enterprise", "--limit", "1")
    assert.strictEqual(enterprise.accounts[0]?.email, "list-1@example.com")
  })

  it.effect("`account list` aligns its columns", function* () {
    yield* register("people@example.com")
    const { output } = yield* command("account", "list")
    const [head = "", row = ""] = output.split("\n")
    assert.match(head, /^USER_ID +EMAIL OR AGENT +PLAN +PER MONTH +KEYS +VERIFIED \(UTC\) +CREATED \(UTC\)$/u)
    assert.match(
      row,
      /^[0-9a-f-]{36} {2}people@example\.com +free +100 +1 {2}20\d\d-\d\d-\d\d \d\d:\d\d +20\d\d-\d\d-\d\d \d\d:\d\d$/u
    )
    assert.strictEqual(head.indexOf("EMAIL"), row.indexOf("people@"))
  })

  it.effect("`account show` and `account list` record who read contact data, and why", function* () {
    yield* register("read@example.com")
    const { user_id: accountId } = yield* showAccount("read@example.com")
    yield* command("account", "list", "--limit", "1", "--by", "carol", "--reason", "ticket 7")
    const logged = yield* RunningService.everythingLogged
    assert.match(logged, new RegExp(`^log AccountsShown \\{"account_id":"${accountId}","accounts":1\\} \\{"actor":"`, "mu"))
    assert.match(logged, /^log AccountsShown \{"account_id":null,"accounts":1\} \{"actor":"carol","reason":"ticket 7"/mu)
  })

  it.effect("`account show` finds an account by its user_id or by its email address, in upper or lower case", function* () {
    yield* register("Show.Me@example.com")
    const byEmail = yield* showAccount("SHOW.ME@EXAMPLE.COM")
    assert.deepStrictEqual(
      [byEmail.email, byEmail.plan, byEmail.per_month, byEmail.keys.length],
      ["Show.Me@example.com", "free", 100, 1]
    )
    assert.deepStrictEqual(yield* showAccount(byEmail.user_id), byEmail)
    const { output } = yield* command("account", "show", byEmail.user_id)
    assert.include(output, byEmail.keys[0]?.key_id ?? "?")
  })

  it.effect(
    "`account show` and `account plan` accept an agent id, and fail with a list of accounts if several accounts have that agent id",
    function* () {
      const { post } = yield* RunningService.RunningService
      yield* post("/v1/register", { agent_id: "Invoice agent/2.1" })
      const shown = yield* showAccount("Invoice agent/2.1")
      assert.deepStrictEqual([shown.agent_id, shown.plan], ["Invoice agent/2.1", "free"])
      yield* command("account", "plan", "Invoice agent/2.1", "business", ...why)
      assert.strictEqual((yield* showAccount(shown.user_id)).plan, "business")
      yield* post("/v1/register", { agent_id: "Invoice agent/2.1" })
      for (const asked of [["show", "Invoice agent/2.1"] as const, ["plan", "Invoice agent/2.1", "free", ...why] as const]) {
        const { failure } = yield* command("account", ...asked)
        assert.match(failure ?? "", /^Several accounts have the agent id "Invoice agent\/2\.1"/u)
        assert.include(failure, shown.user_id)
      }
      assert.strictEqual((yield* showAccount(shown.user_id)).plan, "business")
    }
  )

  it.effect("`account plan` applies upgrades and downgrades at once, and records each as an event", function* () {
    const { validate } = yield* RunningService.RunningService
    const key = yield* register("plan@example.com")
    const { user_id } = yield* showAccount("plan@example.com")
    const usage = Effect.map(validate("ATU12345678", { key }), ({ headers, status }) => [status, headers["x-service-usage"]])
    assert.deepStrictEqual(yield* usage, [200, "1/100"])

    const up = yield* command("account", "plan", "plan@example.com", "business", ...why)
    assert.strictEqual(
      up.output,
      "plan@example.com is on business with 10000 validations per month and key from now on. Before: free with 100."
    )
    assert.deepStrictEqual(yield* usage, [200, "2/10000"])
    yield* command("account", "plan", user_id, "enterprise", "--per-month", "3", ...why)
    assert.deepStrictEqual(yield* usage, [200, "3/3"])
    assert.deepStrictEqual((yield* usage)[0], 429)

    assert.isNotNull((yield* command("account", "plan", user_id, "enterprise", "--per-month", "250.000", ...why)).failure)
    assert.strictEqual((yield* showAccount("plan@example.com")).per_month, 3)

    yield* command("account", "plan", "plan@example.com", "free", ...why)
    assert.deepStrictEqual(yield* usage, [200, "4/100"])
    yield* command("account", "plan", "plan@example.com", "free", "--per-month", "2", ...why)
    assert.deepStrictEqual(yield* usage, [402, "4/2"])
    assert.deepStrictEqual(yield* planChanges(user_id), [
      `{"account_id":"${user_id}","per_month":null,"plan":"business"}`,
      `{"account_id":"${user_id}","per_month":3,"plan":"enterprise"}`,
      `{"account_id":"${user_id}","per_month":null,"plan":"free"}`,
      `{"account_id":"${user_id}","per_month":2,"plan":"free"}`
    ])
  })

  it.effect("`account plan` records no event if the plan is unchanged", function* () {
    yield* register("same@example.com")
    const { user_id } = yield* showAccount("same@example.com")
    const { output } = yield* command("account", "plan", "same@example.com", "free", ...why)
    assert.strictEqual(output, "same@example.com is on free with 100 validations per month and key already: nothing changed.")
    const Changed = Schema.Struct({ changed: Schema.Boolean })
    assert.deepStrictEqual(yield* commandJson(Changed, "account", "plan", "same@example.com", "starter", ...why), {
      changed: true
    })
    assert.deepStrictEqual(yield* commandJson(Changed, "account", "plan", "same@example.com", "starter", ...why), {
      changed: false
    })
    assert.strictEqual((yield* planChanges(user_id)).length, 1)
  })
})
