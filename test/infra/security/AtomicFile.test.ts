import { mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as AtomicFile from "#infra/security/AtomicFile.ts"
import { temporaryFolder } from "#test/support/Auditing.ts"
import { assert, layer } from "#test/support/Test.ts"

layer(NodeServices.layer, { excludeTestServices: true })("an atomic file", (it) => {
  it.effect("has mode 600, and removes the drafts of killed processes after ten minutes", function* () {
    const folder = yield* temporaryFolder
    for (const draft of [".draft-old", ".draft-new"]) {
      mkdirSync(join(folder, draft))
      writeFileSync(join(folder, draft, "secret"), "half")
    }
    const elevenMinutesAgo = Date.now() / 1_000 - 660
    utimesSync(join(folder, ".draft-old"), elevenMinutesAgo, elevenMinutesAgo)
    const { create, replace } = yield* AtomicFile.make
    const file = join(folder, "secret")
    yield* create(file, "one")
    yield* create(file, "two")
    assert.strictEqual(readFileSync(file, "utf8"), "one")
    yield* replace(file, "three")
    assert.strictEqual(readFileSync(file, "utf8"), "three")
    assert.strictEqual(statSync(file).mode & 0o777, 0o600)
    assert.deepStrictEqual(readdirSync(folder).toSorted(), [".draft-new", "secret"])
  })
})
