import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Option } from "effect"
import * as VerifierKeys from "#app/commands/VerifierKeys.ts"
import { formatVerifier } from "#events/log/merkle/NoteKeys.ts"
import * as AppConfig from "#infra/config/AppConfig.ts"
import { temporaryFolder } from "#test/support/Auditing.ts"
import { assert, layer } from "#test/support/Test.ts"
import { signerOf } from "#test/support/log/Keys.ts"

const key = formatVerifier(signerOf("vatproof.example/log/0"))

layer(NodeServices.layer)("the option `--key` of `audit verify`", (it) => {
  it.effect("accepts a key or the path of a key file, and does not mistake a path with a plus sign for a key", function* () {
    const folder = join(yield* temporaryFolder, "2026+1")
    const file = join(folder, "verifier-key.txt")
    mkdirSync(folder)
    writeFileSync(file, `${key}\n`)
    const config = yield* AppConfig.read({ DATA_DIR: folder })
    for (const given of [Option.none<string>(), Option.some(key), Option.some(file)]) {
      const { verifiers } = yield* Effect.provideService(VerifierKeys.forExport(given, folder), AppConfig.AppConfig, config)
      assert.deepStrictEqual(verifiers.map(formatVerifier), [key])
    }
    const nowhere = VerifierKeys.forExport(Option.none(), join(folder, "nowhere"))
    const refused = yield* Effect.flip(Effect.provideService(nowhere, AppConfig.AppConfig, config))
    assert.match(refused.message, /^There is no export in .*nowhere$/u)
  })
})
