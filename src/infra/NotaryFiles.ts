/** What the notary keeps outside the database: its keys, and the newest checkpoint that this machine has seen. */
import { type Array as Arr, Effect, FileSystem, Option, Path, type PlatformError, Redacted, Schema } from "effect"
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

/** A PEM has white space of its own. */
const oneKey = /-----BEGIN[\s\S]*?-----END[^-]*-----|[^\s,]+/gu

/** The keys in a text, between white space or commas. In one that is blank there is one key, which is none. */
export const keysIn = (text: Redacted.Redacted): ReadonlyArray<Redacted.Redacted> =>
  (Redacted.value(text).match(oneKey) ?? [""]).map((key) => Redacted.make(key))

/** The keys that the settings name: those in NOTARY_KEY, else those in NOTARY_KEY_FILE. */
export const givenKeys = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const { notaryKey, notaryKeyFile } = yield* AppConfig
  if (Option.isSome(notaryKey) || Option.isNone(notaryKeyFile)) return Option.map(notaryKey, keysIn)
  const text = yield* fs.readFileString(notaryKeyFile.value).pipe(Effect.catchTag("PlatformError", unusable("NOTARY_KEY_FILE")))
  return Option.some(keysIn(Redacted.make(text)))
})

/**
 * The keys of the log: given ones, else, where the database is our own, one made for it and kept beside it. None with a given database:
 * all its replicas need the same key, so none of them may make one.
 */
export const findKeys = Effect.gen(function* () {
  const path = yield* Path.Path
  const { dataDir, databaseUrl } = yield* AppConfig
  const given = yield* givenKeys
  if (Option.isSome(given) || Option.isSome(databaseUrl)) return given
  return Option.some([yield* KeptSecret.make(path.resolve(dataDir), "notary-key")])
})

/**
 * Remembers the newest checkpoint, so that an older copy of the database is recognised when it comes back: in a file for each key, of which
 * the first one's is written.
 */
export const memory = Effect.fnUntraced(function* (keyIds: Arr.NonEmptyReadonlyArray<number>) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { dataDir } = yield* AppConfig
  const fileOf = (keyId: number) => path.resolve(dataDir, `notary-${keyId.toString(16).padStart(8, "0")}.checkpoint`)
  const file = fileOf(keyIds[0])
  const seen = yield* Effect.forEach(keyIds.map(fileOf), (at) =>
    fs.readFileString(at).pipe(
      Effect.map((note) => [{ note, at }]),
      Effect.catchTag("PlatformError", (error) => (error.reason._tag === "NotFound" ? Effect.succeed([]) : unusable(at)(error)))
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
  return { seen: seen.flat(), remember }
})
