import { readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { Effect, Fiber, Redacted, Schedule } from "effect"
import { HttpClient } from "effect/http"
import { formatVerifier } from "#events/merkle/NoteKeys.ts"
import { signer, signing, temporaryFolder } from "#test/support/Auditing.ts"
import { command, spawned } from "#test/support/CommandLine.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"
import { TestDatabase } from "#test/support/TestDatabase.ts"

layer(RunningService.layer(), { excludeTestServices: true })("vatproof notary", (it) => {
  it.effect("generates keys that can sign", function* () {
    const folder = yield* temporaryFolder
    const out = join(folder, "notary.key")
    const made = yield* command("notary", "key", "--name", "vat.example.com/log/0", "--out", out)
    assert.match(made.output, /Public key: vat\.example\.com\/log\/0\+[\da-f]{8}\+\S+/u)
    assert.match(readFileSync(out, "utf8"), /^PRIVATE\+KEY\+vat\.example\.com\/log\/0\+/u)
    assert.strictEqual(statSync(out).mode & 0o777, 0o600)
    assert.notInclude(made.output, "PRIVATE")
    assert.isNotNull((yield* command("notary", "key", "--out", out)).failure)
    assert.match((yield* command("notary", "key")).output, /^NOTARY_KEY=PRIVATE\+KEY\+vatproof\/log\/0\+/u)
  })

  it.effect("prints the public key of the configured service", function* () {
    const { url } = yield* TestDatabase
    const env = { DATABASE_URL: Redacted.value(url), ...signing(yield* temporaryFolder) }
    const { code, stdout } = yield* spawned(env, "notary", "verifier")
    assert.deepStrictEqual([code, stdout.trim()], [0, formatVerifier(signer)])
    const none = yield* command("notary", "verifier")
    assert.match(none.output, /is not signed/u)
  })

  it.effect(
    "adopts an unsigned log after an operator has verified it",
    function* () {
      const { newKey } = yield* RunningService.RunningService
      yield* newKey
      const { url } = yield* TestDatabase
      const settings = signing(yield* temporaryFolder)
      const adopt = (...flags: ReadonlyArray<string>) =>
        spawned({ DATABASE_URL: Redacted.value(url), ...settings }, "notary", "adopt", ...flags)

      const adminPort = yield* RunningService.freePort
      const http = yield* HttpClient.HttpClient
      const told = http.get(`http://127.0.0.1:${adminPort}/readyz`).pipe(
        Effect.flatMap(({ text }) => text),
        Effect.repeat({ until: (text) => text.includes("no checkpoint"), schedule: Schedule.spaced("50 millis") })
      )
      const waiting = yield* Effect.forkScoped(RunningService.start({ ...settings, ADMIN_PORT: String(adminPort) }))
      assert.match(yield* Effect.retry(told, Schedule.spaced("50 millis")), /"notary":"There are \d+ events and no checkpoint/u)

      const { stdout } = yield* adopt()
      const [, history = ""] = /--i-have-verified (\S+) /u.exec(stdout) ?? []
      assert.match((yield* adopt("--i-have-verified", history)).stderr, /Add --reason/u)
      const adopted = yield* adopt("--i-have-verified", history, "--by", "ops", "--reason", "The key came late")
      assert.strictEqual(adopted.code, 0, adopted.stderr)

      const verified = yield* spawned({ DATABASE_URL: Redacted.value(url), ...settings }, "audit", "verify")
      assert.match(verified.stderr, /Event \d+ adopted the log: only checkpoints kept elsewhere prove/u)

      const service = yield* Fiber.join(waiting)
      assert.strictEqual((yield* service.get("/health")).status, 200)
      assert.match((yield* adopt()).stdout, /nothing to adopt/u)
      assert.match(yield* RunningService.everythingLogged, /LogAdopted .*"actor":"ops","reason":"The key came late"/u)
    },
    60_000
  )
})
