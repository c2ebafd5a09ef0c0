/** Reads secrets from files, as orchestrators mount them: DATABASE_URL_FILE is the path of a file that contains DATABASE_URL. */
import { Effect, FileSystem, Schema } from "effect"

/**
 * The settings that the service can read from a file. NOTARY_KEY is not in this list: NotaryKeys.ts reads NOTARY_KEY_FILE itself,
 * and only in a process that signs checkpoints.
 */
const secrets = ["DATABASE_URL", "JWT_SECRET", "SMTP_URL", "API_KEY"]

/** The names of the settings that contain a file's path, e.g. `DATABASE_URL_FILE`. */
export const fileSecretNames = secrets.map((name) => `${name}_FILE`)

/** The file of a secret is unreadable or empty, or the secret is set twice. The message names the setting, never the secret. */
export class SecretUnreadable extends Schema.TaggedError<SecretUnreadable>()("SecretUnreadable", {
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}

type Environment = Readonly<Record<string, string | undefined>>

/** Returns the environment with the secrets from files added. Fails if a secret is set both by value and by file. */
export const fileSecrets = Effect.fnUntraced(function* (env: Environment) {
  const fs = yield* FileSystem.FileSystem
  const read: Record<string, string> = {}
  for (const name of secrets) {
    const file = env[`${name}_FILE`]?.trim() ?? ""
    if (file === "") continue
    if ((env[name]?.trim() ?? "") !== "") return yield* new SecretUnreadable({ message: `Set ${name} or ${name}_FILE, not both` })
    const text = yield* fs
      .readFileString(file)
      .pipe(
        Effect.catchTag("PlatformError", (cause) =>
          Effect.fail(new SecretUnreadable({ message: `${name}_FILE: The file cannot be read: ${cause.message}`, cause }))
        )
      )
    if (text.trim() === "") return yield* new SecretUnreadable({ message: `${name}_FILE: The file ${file} is empty` })
    read[name] = text
  }
  return { ...env, ...read }
})
