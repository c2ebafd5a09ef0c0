import { Effect } from "effect"
import { command } from "#test/support/CommandLine.ts"
import { register, settings, showAccount, why } from "#test/support/Operations.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

layer(RunningService.layerShared(settings), { excludeTestServices: true })("vatproof", (it) => {
  it.effect("`key revoke` makes every replica reject the key at once", function* () {
    const { get } = yield* RunningService.RunningService
    const other = yield* RunningService.make(settings)
    const key = yield* register("revoke@example.com")
    assert.deepStrictEqual(
      [(yield* get("/v1/usage", { key })).status, (yield* other.get("/v1/usage", { key })).status],
      [200, 200]
    )
    const { output } = yield* command("key", "revoke", key.slice(0, 12), "--account", "revoke@example.com", ...why)
    assert.include(output, `The API key ${key.slice(0, 12)} of revoke@example.com is revoked`)
    assert.deepStrictEqual(
      [(yield* get("/v1/usage", { key })).status, (yield* other.get("/v1/usage", { key })).status],
      [401, 401]
    )
    const again = yield* command("key", "revoke", key.slice(0, 12), "--account", "revoke@example.com", ...why)
    assert.match(again.output, /was revoked already, on 20\d\d-\d\d-\d\d \d\d:\d\d \(UTC\)\.$/u)
  })

  it.effect(
    "`key revoke` revokes a key in only one of two concurrent calls; the second call reports that the key was revoked already",
    function* () {
      const key = yield* register("both@example.com")
      const revoke = command("key", "revoke", key.slice(0, 12), "--account", "both@example.com", ...why)
      const outputs = (yield* Effect.all([revoke, revoke], { concurrency: "unbounded" })).map(({ output }) => output).toSorted()
      assert.include(outputs[0], "is revoked: every replica rejects it from now on")
      assert.include(outputs[1], "was revoked already")
    }
  )

  it.effect(
    "`key revoke` accepts a key_id alone, but a prefix only together with the key's account, and rejects an unknown key",
    function* () {
      const key = yield* register("key-id@example.com")
      const { keys } = yield* showAccount("key-id@example.com")
      const alone = yield* command("key", "revoke", key.slice(0, 12), ...why)
      assert.strictEqual(
        alone.failure,
        "The first 12 characters identify a key only within its account: add --account <email or user_id>, or use the key_id"
      )
      const wrong = yield* command("key", "revoke", "svc_live_---", "--account", "key-id@example.com", ...why)
      assert.strictEqual(wrong.failure, `The account key-id@example.com has no API key "svc_live_---"`)
      assert.isNull((yield* command("key", "revoke", keys[0]?.key_id ?? "?", ...why)).failure)
    }
  )
})
