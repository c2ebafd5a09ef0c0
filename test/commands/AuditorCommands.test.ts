import { Schema } from "effect"
import { command, commandJson } from "#test/support/CommandLine.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

const Added = Schema.Struct({ auditor_id: Schema.String, token: Schema.String })

layer(RunningService.layerShared(), { excludeTestServices: true })("`vatproof auditor`", (it) => {
  it.effect("adds, lists and revokes auditors", function* () {
    const { get } = yield* RunningService.RunningService
    const { auditor_id, token } = yield* commandJson(Added, "auditor", "add", "Finanzamt", "--days", "14")
    const headers = { authorization: `Bearer ${token}` }
    assert.strictEqual((yield* get("/v1/audit/events", { headers })).status, 200)
    assert.match((yield* command("auditor", "list")).output, new RegExp(`${auditor_id} +Finanzamt +all +active`, "u"))
    assert.isNull((yield* command("auditor", "revoke", auditor_id)).failure)
    assert.strictEqual((yield* get("/v1/audit/events", { headers })).status, 401)
    assert.match((yield* command("auditor", "list")).output, /revoked/u)
    assert.match((yield* command("auditor", "revoke", auditor_id)).failure ?? "", /There is no auditor/u)
    assert.match(
      (yield* command("auditor", "add", "X", "--account", "unknown@example.com")).failure ?? "",
      /unknown@example.com/u
    )
    assert.notInclude(yield* RunningService.everythingLogged, token)
  })
})
