import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Redacted, Schedule } from "effect"
import { formatVerifier } from "#events/log/merkle/NoteKeys.ts"
import { signing, temporaryFolder } from "#test/support/Auditing.ts"
import { command, commandWith } from "#test/support/CommandLine.ts"
import { assert, layer } from "#test/support/Test.ts"
import { logName, secretOf, signer, signerOf } from "#test/support/log/Keys.ts"
import * as RunningService from "#test/support/RunningService.ts"

const key = formatVerifier(signer)
const next = signerOf(logName, "next")
const secret = Redacted.value(secretOf(logName))
const nextSecret = Redacted.value(secretOf(logName, "next"))

layer(RunningService.layerGround, { excludeTestServices: true })("the rotation of the signing key of a log", (it) => {
  it.effect("signs each checkpoint with all configured keys: the old key, then both keys, then the new key", function* () {
    const folder = yield* temporaryFolder
    /** Appends an event and returns the number of signatures of the newest checkpoint. */
    const signaturesWith = (keys: string, size: number) =>
      Effect.scoped(
        Effect.gen(function* () {
          const service = yield* RunningService.start({ ...signing(folder), NOTARY_KEY: keys })
          yield* service.validate("ATU12345678")
          const { text } = yield* Effect.repeat(service.get("/v1/audit/checkpoint"), {
            until: (checkpoint) => checkpoint.text.split("\n")[1] === String(size),
            schedule: Schedule.spaced("50 millis")
          }).pipe(Effect.timeout("15 seconds"))
          return text.split("\n").filter((line) => line.startsWith("— ")).length
        })
      )
    assert.strictEqual(yield* signaturesWith(secret, 1), 1)
    assert.strictEqual(yield* signaturesWith(`${nextSecret} ${secret}`, 2), 2)
    assert.strictEqual(yield* signaturesWith(`${nextSecret} ${key}`, 3), 1)
  })

  it.effect("makes `audit verify` require both the old and the new public key", function* () {
    const folder = yield* temporaryFolder
    const run = (keys: string, ...args: ReadonlyArray<string>) => commandWith({ NOTARY_KEY: keys, DATA_DIR: folder }, ...args)
    const both = `${nextSecret} ${key}`

    assert.deepStrictEqual((yield* run(both, "notary", "verifier")).output.split("\n"), [formatVerifier(next), key])
    assert.match((yield* command("notary", "verifier")).failure ?? "", /is signed by a key that this command does not know/u)
    const whole = (yield* run(both, "audit", "verify")).output
    assert.match(whole, /The log is intact: 3 events/u)
    assert.include(whole, `\nThe newest checkpoint is signed with ${formatVerifier(next)}`)
    for (const alone of [nextSecret, secret]) {
      const unknown = yield* run(alone, "audit", "verify")
      assert.isNotNull(unknown.failure)
      assert.match(unknown.output, /No known key has signed the note/u)
    }

    const directory = join(folder, "export")
    assert.isNull((yield* run(both, "audit", "export", "--out", directory)).failure)
    assert.strictEqual(readFileSync(join(directory, "verifier-key.txt"), "utf8"), `${formatVerifier(next)}\n${key}\n`)
    assert.isNull((yield* command("audit", "verify", "--export", directory)).failure)
    const given = `${formatVerifier(next)} ${key}`
    assert.isNull((yield* command("audit", "verify", "--export", directory, "--key", given)).failure)
  })
})
