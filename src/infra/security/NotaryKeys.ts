/** What the notary keeps outside the database: its keys, and the newest checkpoint that this machine has seen. */
import { Array as Arr, Effect, FileSystem, Option, Path, type PlatformError, Redacted, Schema } from "effect"
import { AppConfig, InvalidSetting } from "#infra/config/AppConfig.ts"
import { isUrl, newestFile } from "#infra/security/CheckpointMirror.ts"
import * as AtomicFile from "#infra/security/AtomicFile.ts"
import * as GeneratedSecret from "#infra/security/GeneratedSecret.ts"

/** A file of the notary's cannot be read; the message names it. */
export class NotaryKeyUnusable extends Schema.TaggedError<NotaryKeyUnusable>()("NotaryKeyUnusable", {
  message: Schema.String,
  cause: Schema.Defect()
}) {}

const unusable = (what: string) => (cause: PlatformError.PlatformError) =>
  Effect.fail(new NotaryKeyUnusable({ message: `${what} cannot be read: ${cause.message}`, cause }))

/** What a log is called that was never signed: after the place where it can be had, else after the service. */
export const logName = Effect.map(AppConfig, ({ publicUrl, serviceName }) => {
  const host = Option.map(publicUrl, (url) => new URL(url).host)
  return `${Option.getOrElse(host, () => serviceName)}/log/0`
})

/** A PEM, or else a word. */
const piece = /-----BEGIN (?<what>[A-Z ]+)-----[\s\S]*?-----END \k<what>-----|(?:(?!-----BEGIN )\S)+/gu
/** What can stand beside a PEM that says what it is. */
const named = /^PRIVATE\+KEY\+|\+[\da-f]{8}\+/u

/** The keys in a text, in its order, with white space in between. Of what has a PEM, prose beside it is not looked at. */
export const keysIn = (text: Redacted.Redacted): Arr.NonEmptyReadonlyArray<Redacted.Redacted> => {
  const value = Redacted.value(text)
  const pieces = [...value.matchAll(piece)].map(([content, what]) => ({ content, what }))
  const hasPem = pieces.some(({ what }) => what === "PRIVATE KEY")
  const keys = pieces
    .filter(({ content, what }) => (what === undefined ? !hasPem || named.test(content) : what === "PRIVATE KEY"))
    .map(({ content }) => content)
  // What holds no key is not without one: it is to be refused.
  return Arr.map(Arr.isReadonlyArrayNonEmpty(keys) ? keys : Arr.of(value), (key) => Redacted.make(key))
}

/** The keys that the settings name: those in NOTARY_KEY, else those in NOTARY_KEY_FILE. */
export const givenKeys = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const { notaryKey, notaryKeyFile } = yield* AppConfig
  if (Option.isSome(notaryKey) || Option.isNone(notaryKeyFile)) return Option.map(notaryKey, keysIn)
  const text = yield* fs.readFileString(notaryKeyFile.value).pipe(Effect.catchTag("PlatformError", unusable("NOTARY_KEY_FILE")))
  return Option.some(keysIn(Redacted.make(text)))
})

/** Refuses given keys for the reason given, by the name of the setting that has them. */
export const refuse = ({ message }: { readonly message: string }) =>
  Effect.flatMap(AppConfig, ({ notaryKey }) =>
    Effect.fail(new InvalidSetting({ message: `${Option.isSome(notaryKey) ? "NOTARY_KEY" : "NOTARY_KEY_FILE"}: ${message}` }))
  )

/**
 * The keys of the log: given ones, else, where the database is our own, one made for it and kept beside it. None with a given database:
 * all its replicas need the same key, so none of them may make one.
 */
export const findKeys = Effect.gen(function* () {
  const path = yield* Path.Path
  const { dataDir, databaseUrl } = yield* AppConfig
  const given = yield* givenKeys
  if (Option.isSome(given) || Option.isSome(databaseUrl)) return given
  return Option.some(Arr.of(yield* GeneratedSecret.make(path.resolve(dataDir), "notary-key")))
})

/** The ids of the keys that sign, and of all that count. */
export interface RememberedKeys {
  readonly signers: ReadonlyArray<{ readonly id: number }>
  readonly verifiers: ReadonlyArray<{ readonly id: number }>
}

/**
 * Remembers the newest checkpoint, so that an older copy of the database is recognised when it comes back: in a file for each key that has
 * signed it.
 */
export const memory = Effect.fnUntraced(function* ({ signers, verifiers }: RememberedKeys) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const atomic = yield* AtomicFile.make
  const { checkpointMirror, dataDir } = yield* AppConfig
  const fileOf = ({ id }: { readonly id: number }) =>
    path.resolve(dataDir, `notary-${id.toString(16).padStart(8, "0")}.checkpoint`)
  // A mirror in a folder remembers also for a machine that forgets.
  const mirrored = Option.toArray(Option.map(checkpointMirror, Redacted.value))
    .filter((place) => !isUrl(place))
    .map((place) => path.resolve(place, newestFile))
  const files = [...verifiers.map(fileOf), ...mirrored]
  const loadSeen = Effect.forEach(files, (at) =>
    fs.readFileString(at).pipe(
      Effect.map((note) => [{ note, at }]),
      Effect.catchTag("PlatformError", (error) => (error.reason._tag === "NotFound" ? Effect.succeed([]) : unusable(at)(error)))
    )
  ).pipe(Effect.map((seen) => seen.flat()))
  const saveSeen = (note: string) =>
    Effect.forEach(
      signers.map(fileOf),
      (file) =>
        atomic
          .replace(file, note)
          .pipe(
            Effect.catchTag("PlatformError", (error) =>
              Effect.logWarning(`The newest checkpoint cannot be kept in ${file}`, error)
            )
          ),
      { discard: true }
    )
  /** What was remembered so far stays beside, as evidence of what it was. */
  const replace = (note: string) =>
    Effect.forEach(files, (file) => Effect.catchTag(fs.rename(file, `${file}.replaced`), "PlatformError", () => Effect.void), {
      discard: true
    }).pipe(Effect.andThen(saveSeen(note)))
  return { loadSeen, saveSeen, replace }
})
