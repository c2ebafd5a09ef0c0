/** A secret that an installation generates once and keeps in a file that only its user can read. */
import { Effect, FileSystem, Path, Redacted, Schema } from "effect"
import * as Base64Url from "effect/encoding/Base64Url"
import { Crypto } from "#domain/kernel/Crypto.ts"
import * as AtomicFile from "#infra/security/AtomicFile.ts"

/** The file of the secret cannot be written or read, or its content was changed. */
export class SecretNotStored extends Schema.TaggedError<SecretNotStored>()("SecretNotStored", {
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}

const secretBytes = 32
const form = /^[\w-]{43}$/u

/**
 * Returns 256 random bits as 43 characters from the file `name` in `directory`. Creates a missing file. If several processes start
 * at once, one creates the secret and all use it.
 */
export const make = Effect.fn("GeneratedSecret.make")(
  function* (directory: string, name: string) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const file = path.join(directory, name)
    if (!(yield* fs.exists(file))) {
      const { randomBytes } = yield* Crypto
      const atomic = yield* AtomicFile.make
      yield* atomic.create(file, `${Base64Url.encode(randomBytes(secretBytes))}\n`)
    }
    const secret = (yield* fs.readFileString(file)).trim()
    if (form.test(secret)) return Redacted.make(secret)
    return yield* new SecretNotStored({
      message: `The content of ${file} is not a generated secret: restore the file, or remove it to generate a new secret`
    })
  },
  (effect, directory, name) =>
    Effect.catchTag(effect, "PlatformError", (cause) =>
      Effect.fail(
        new SecretNotStored({
          message: `The file of the secret ${name} in ${directory} cannot be read or created: ${cause.message}`,
          cause
        })
      )
    )
)
