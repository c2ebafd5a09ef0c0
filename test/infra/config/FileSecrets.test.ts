import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { fileSecrets } from "#infra/config/FileSecrets.ts"

const inFolder = (
  test: (file: (name: string, text: string) => Effect.Effect<string>) => Effect.Effect<void, unknown, FileSystem.FileSystem>
) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const folder = yield* fs.makeTempDirectoryScoped()
    yield* test((name, text) =>
      Effect.as(fs.writeFileString(`${folder}/${name}`, text), `${folder}/${name}`).pipe(
        Effect.catchTag("PlatformError", Effect.die)
      )
    )
  }).pipe(Effect.provide(NodeServices.layer))

const refusal = (env: Record<string, string>) => Effect.map(Effect.flip(fileSecrets(env)), ({ message }) => message)

it.effect("the settings read the secret DATABASE_URL from the file that DATABASE_URL_FILE names", () =>
  inFolder(
    Effect.fnUntraced(function* (file) {
      const url = yield* file("url", "postgresql://a:b@c/d\n")
      const env = yield* fileSecrets({ PORT: "1", DATABASE_URL_FILE: url })
      assert.strictEqual(env["DATABASE_URL"]?.trim(), "postgresql://a:b@c/d")
      assert.strictEqual(env["PORT"], "1")
    })
  )
)

it.effect("the settings report the _FILE setting and the file name if the file of a secret is missing or empty", () =>
  inFolder(
    Effect.fnUntraced(function* (file) {
      assert.match(yield* refusal({ JWT_SECRET_FILE: "/nowhere/at/all" }), /^JWT_SECRET_FILE: .*\/nowhere\/at\/all/u)
      assert.match(yield* refusal({ SMTP_URL_FILE: yield* file("empty", " \n") }), /^SMTP_URL_FILE: .* is empty$/u)
    })
  )
)

it.effect("the settings reject a secret that is set both by value and by file", () =>
  inFolder(
    Effect.fnUntraced(function* (file) {
      const message = yield* refusal({ JWT_SECRET: "a secret", JWT_SECRET_FILE: yield* file("jwt", "another secret") })
      assert.strictEqual(message, "Set JWT_SECRET or JWT_SECRET_FILE, not both")
    })
  )
)
