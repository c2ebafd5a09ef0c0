import { readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { formatVerifier } from "#events/log/NoteKeys.ts"
import { signer, signing, temporaryFolder } from "#test/support/Auditing.ts"
import { command, spawned } from "#test/support/CommandLine.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { TestDatabase } from "#test/support/TestDatabase.ts"

layer(RunningService.layer(), { excludeTestServices: true })("vatproof notary", (it) => {
  it.effect("makes keys that sign", () =>
    Effect.gen(function* () {
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
  )

  it.effect("prints the public key of the service whose settings it has", () =>
    Effect.gen(function* () {
      const { url } = yield* TestDatabase
      const env = { DATABASE_URL: Redacted.value(url), ...signing(yield* temporaryFolder) }
      const { code, stdout } = yield* spawned(env, "notary", "verifier")
      assert.deepStrictEqual([code, stdout.trim()], [0, formatVerifier(signer)])
      const none = yield* command("notary", "verifier")
      assert.match(none.output, /is not signed/u)
    })
  )
})
