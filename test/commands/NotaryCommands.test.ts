import { readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { Effect, Fiber, Schedule } from "effect"
import { HttpClient } from "effect/http"
import { formatVerifier } from "#events/log/merkle/NoteKeys.ts"
import { signing, temporaryFolder } from "#test/support/Auditing.ts"
import { command, commandWith } from "#test/support/CommandLine.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"
import { signer } from "#test/support/log/Keys.ts"

layer(RunningService.layerGround, { excludeTestServices: true })("`vatproof notary`", (it) => {
  it.effect("generates a signing key, prints its public key, and writes it to a file that only the owner can read", function* () {
    const folder = yield* temporaryFolder
    const out = join(folder, "notary.key")
    const made = yield* command("notary", "key", "--name", "vat.example.com/log/0", "--out", out)
    assert.match(made.output, /Public key: vat\.example\.com\/log\/0\+[\da-f]{8}\+\S+/u)
    assert.match(readFileSync(out, "utf8"), /^PRIVATE\+KEY\+vat\.example\.com\/log\/0\+/u)
    assert.strictEqual(statSync(out).mode & 0o777, 0o600)
    assert.notInclude(made.output, "PRIVATE")
    assert.isNotNull((yield* command("notary", "key", "--out", out)).failure)
    const named = yield* commandWith({ PUBLIC_URL: "https://vat.example.org" }, "notary", "key")
    assert.match(named.output, /^NOTARY_KEY=PRIVATE\+KEY\+vat\.example\.org\/log\/0\+/u)
  })

  it.effect("generates no signing key without PUBLIC_URL or --name, because the key has the name of the log", function* () {
    const { failure, output } = yield* command("notary", "key")
    assert.match(failure ?? "", /^Set PUBLIC_URL, or add --name/u)
    assert.strictEqual(output, "")
  })

  it.effect("prints the public key of the configured signing key, or that the log is not signed", function* () {
    yield* MigratedDatabase.openLog
    const signed = yield* commandWith(signing(yield* temporaryFolder), "notary", "verifier")
    assert.strictEqual(signed.output, formatVerifier(signer))
    const none = yield* command("notary", "verifier")
    assert.match(none.output, /is not signed/u)
  })

  it.effect("adopts an unsigned log after an operator has verified it", function* () {
    yield* command("auditor", "add", "tax office")
    const settings = signing(yield* temporaryFolder)
    const adopt = (...flags: ReadonlyArray<string>) => commandWith(settings, "notary", "adopt", ...flags)

    const adminPort = yield* RunningService.freePort
    const http = yield* HttpClient.HttpClient
    const told = http.get(`http://127.0.0.1:${adminPort}/readyz`).pipe(
      Effect.flatMap(({ text }) => text),
      Effect.repeat({ until: (text) => text.includes("no checkpoint"), schedule: Schedule.spaced("50 millis") })
    )
    const waiting = yield* Effect.forkScoped(RunningService.start({ ...settings, ADMIN_PORT: String(adminPort) }))
    assert.match(yield* Effect.retry(told, Schedule.spaced("50 millis")), /"notary":"There are \d+ events and no checkpoint/u)

    const { output } = yield* adopt()
    const [, history = ""] = /--i-have-verified (\S+) /u.exec(output) ?? []
    assert.match((yield* adopt("--i-have-verified", history)).failure ?? "", /Add --reason/u)
    const adopted = yield* adopt("--i-have-verified", history, "--by", "ops", "--reason", "The key came late")
    assert.isNull(adopted.failure)

    const verified = yield* commandWith(settings, "audit", "verify")
    assert.match(
      verified.remarks,
      /An operator adopted the log \(event at position \d+\)\. Only checkpoints kept outside the database prove/u
    )

    const service = yield* Fiber.join(waiting)
    assert.strictEqual((yield* service.get("/health")).status, 200)
    assert.match((yield* adopt()).output, /nothing to adopt/u)
    assert.match(yield* RunningService.everythingLogged, /LogAdopted .*"actor":"ops","reason":"The key came late"/u)
  })
})
