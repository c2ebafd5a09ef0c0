/** What the notary keeps outside the database: its key, and the newest checkpoint that this machine has seen. */
import { Effect, FileSystem, Option, Path, type PlatformError, Redacted, Schema } from "effect"
import { AppConfig } from "#infra/AppConfig.ts"
import * as KeptSecret from "#infra/KeptSecret.ts"

/** A file of the notary's cannot be read; the message names it. */
export class NotaryFileUnusable extends Schema.TaggedError<NotaryFileUnusable>()("NotaryFileUnusable", {
  message: Schema.String,
  cause: Schema.Defect()
}) {}

const unusable = (what: string) => (cause: PlatformError.PlatformError) =>
  Effect.fail(new NotaryFileUnusable({ message: `${what} cannot be read: ${cause.message}`, cause }))

/** What a log is called that was never signed: after the place where it can be had, else after the service. */
export const logName = Effect.map(AppConfig, ({ publicUrl, serviceName }) => {
  const host = Option.map(publicUrl, (url) => new URL(url).host)
  return `${Option.getOrElse(host, () => serviceName)}/log/0`
})

/** The key that the settings name: NOTARY_KEY, else the content of NOTARY_KEY_FILE. */
export const givenKey = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const { notaryKey, notaryKeyFile } = yield* AppConfig
  if (Option.isSome(notaryKey) || Option.isNone(notaryKeyFile)) return notaryKey
  const text = yield* fs.readFileString(notaryKeyFile.value).pipe(Effect.catchTag("PlatformError", unusable("NOTARY_KEY_FILE")))
  return Option.some(Redacted.make(text))
})

/**
 * The key that signs: a given one, else, where the database is our own, one made for it and kept beside it. None with a given database:
 * all its replicas need the same key, so none of them may make one.
 */
export const findKey = Effect.gen(function* () {
  const path = yield* Path.Path
  const { dataDir, databaseUrl } = yield* AppConfig
  const given = yield* givenKey
  if (Option.isSome(given) || Option.isSome(databaseUrl)) return given
  return Option.some(yield* KeptSecret.make(path.resolve(dataDir), "notary-key"))
})

/** Remembers the newest checkpoint of one key, so that an older copy of the database is recognised when it comes back. */
export const memory = Effect.fnUntraced(function* (keyId: number) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { dataDir } = yield* AppConfig
  const file = path.resolve(dataDir, `notary-${keyId.toString(16).padStart(8, "0")}.checkpoint`)
  const seen = yield* fs.readFileString(file).pipe(
    Effect.map(Option.some),
    Effect.catchTag("PlatformError", (error) =>
      error.reason._tag === "NotFound" ? Effect.succeed(Option.none<string>()) : unusable(file)(error)
    )
  )
  // Renamed into its place, so that a crash leaves the old one or the new one.
  const write = Effect.fnUntraced(function* (note: string) {
    yield* fs.makeDirectory(path.dirname(file), { recursive: true, mode: 0o700 })
    yield* fs.writeFileString(`${file}.new`, note)
    yield* fs.rename(`${file}.new`, file)
  })
  const remember = (note: string) =>
    write(note).pipe(
      Effect.catchTag("PlatformError", (error) => Effect.logWarning(`The newest checkpoint cannot be kept in ${file}`, error))
    )
  return { seen, seenAt: file, remember }
})
