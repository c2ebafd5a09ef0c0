/** Secrets in files, as orchestrators mount them: DATABASE_URL_FILE names the file with DATABASE_URL. */
import { Effect, FileSystem, Schema } from "effect"

/** NotaryKeys.ts handles NOTARY_KEY_FILE and reads it only to sign. */
const secrets = ["DATABASE_URL", "JWT_SECRET", "SMTP_URL", "API_KEY"]

/** The settings that name these files. */
export const fileSecretNames = secrets.map((name) => `${name}_FILE`)

/** A secret's file cannot be used; the message names the setting and never the content. */
export class SecretUnreadable extends Schema.TaggedError<SecretUnreadable>()("SecretUnreadable", {
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}

type Environment = Readonly<Record<string, string | undefined>>

/** Returns the environment with the secrets from the files. Rejects a secret that is set both ways. */
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
          Effect.fail(new SecretUnreadable({ message: `${name}_FILE: ${cause.message}`, cause }))
        )
      )
    if (text.trim() === "") return yield* new SecretUnreadable({ message: `${name}_FILE: ${file} is empty` })
    read[name] = text
  }
  return { ...env, ...read }
})
