import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Layer, Path, Redacted } from "effect"
import * as GeneratedSecret from "#infra/security/GeneratedSecret.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import { assert, layer } from "#test/support/Test.ts"

const folder = Effect.flatMap(FileSystem.FileSystem, (fs) => fs.makeTempDirectoryScoped())

layer(Layer.merge(NodeServices.layer, NodeCrypto.layer))("a generated secret", (it) => {
  it.effect("is generated once, with 256 bits, in a file that only its owner can read", function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const directory = path.join(yield* folder, "deep", "down")
    const first = Redacted.value(yield* GeneratedSecret.make(directory, "jwt-secret"))
    assert.match(first, /^[\w-]{43}$/u)
    assert.strictEqual(Redacted.value(yield* GeneratedSecret.make(directory, "jwt-secret")), first)
    assert.notStrictEqual(Redacted.value(yield* GeneratedSecret.make(directory, "another")), first)
    const { mode } = yield* fs.stat(path.join(directory, "jwt-secret"))
    assert.strictEqual((mode & 0o777).toString(8), "600")
    assert.deepStrictEqual((yield* fs.readDirectory(directory)).toSorted(), ["another", "jwt-secret"])
  })

  it.effect("is the same in all processes that start concurrently", function* () {
    const directory = yield* folder
    const made = yield* Effect.forEach(Array.from({ length: 20 }), () => GeneratedSecret.make(directory, "jwt-secret"), {
      concurrency: "unbounded"
    })
    assert.strictEqual(new Set(made.map(Redacted.value)).size, 1)
  })

  it.effect("does not overwrite a file with other content", function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const directory = yield* folder
    const file = path.join(directory, "jwt-secret")
    yield* fs.writeFileString(file, "")
    const error = yield* Effect.flip(GeneratedSecret.make(directory, "jwt-secret"))
    assert.strictEqual(
      error.message,
      `The content of ${file} is not a generated secret: restore the file, or remove it to generate a new secret`
    )
  })

  it.effect("fails with an error that names the folder if its file cannot be created", function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const file = path.join(yield* folder, "a file")
    yield* fs.writeFileString(file, "")
    const error = yield* Effect.flip(GeneratedSecret.make(file, "jwt-secret"))
    assert.include(error.message, `The file of the secret jwt-secret in ${file} cannot be read or created`)
  })
})
