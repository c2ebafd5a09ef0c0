/** The notary's data outside the database: its keys, and the newest checkpoint that this machine has seen. */
import { Array as Arr, Effect, FileSystem, Option, Path, type PlatformError, Redacted, Schema } from "effect"
import { logNameOf } from "#domain/log/LogPurpose.ts"
import { AppConfig, InvalidSetting } from "#infra/config/AppConfig.ts"
import * as AtomicFile from "#infra/security/AtomicFile.ts"
import * as GeneratedSecret from "#infra/security/GeneratedSecret.ts"

/** A file of the notary cannot be read; the message names the file or its setting. */
export class NotaryKeyUnusable extends Schema.TaggedError<NotaryKeyUnusable>()("NotaryKeyUnusable", {
  message: Schema.String,
  cause: Schema.Defect()
}) {}

/** Returns true if a mirror is a URL (`https://…`, or `http://…` to this machine), and false if it is a folder. */
export const isUrl = (place: string) => /^https?:\/\//u.test(place)

/**
 * The name of the file with the newest checkpoint in a mirror folder. The folder also has one file for each day (UTC), with the
 * last checkpoint of the day.
 */
export const newestFile = "checkpoint"

const unusable = (what: string) => (cause: PlatformError.PlatformError) =>
  Effect.fail(new NotaryKeyUnusable({ message: `${what} cannot be read: ${cause.message}`, cause }))

/** Returns the name for a log without signatures: the host of PUBLIC_URL, or otherwise the service name, followed by its purpose. */
export const logName = Effect.map(AppConfig, ({ publicUrl, purpose, serviceName }) => {
  const host = Option.map(publicUrl, (url) => new URL(url).host)
  return logNameOf(
    Option.getOrElse(host, () => serviceName),
    purpose
  )
})

/** Matches a PEM block, or a word outside of PEM blocks. */
const piece = /-----BEGIN (?<what>[A-Z ]+)-----[\s\S]*?-----END \k<what>-----|(?:(?!-----BEGIN )\S)+/gu
/**
 * Matches a key in the text form of signed notes (C2SP). In a text with a PEM private key, a word without this form is ignored.
 */
const named = /^PRIVATE\+KEY\+|\+[\da-f]{8}\+/u

/**
 * Returns the keys in a text in their order. White space separates the keys. In a text with a PEM private key, a word is ignored
 * unless it has the form of a key in signed notes.
 */
export const keysIn = (text: Redacted.Redacted): Arr.NonEmptyReadonlyArray<Redacted.Redacted> => {
  const value = Redacted.value(text)
  const pieces = [...value.matchAll(piece)].map(([content, what]) => ({ content, what }))
  const hasPem = pieces.some(({ what }) => what === "PRIVATE KEY")
  const keys = pieces
    .filter(({ content, what }) => (what === undefined ? !hasPem || named.test(content) : what === "PRIVATE KEY"))
    .map(({ content }) => content)
  // Returns a text without any key as a key, so that the caller reports it as invalid and does not treat it as "no key
  // configured".
  return Arr.map(Arr.isReadonlyArrayNonEmpty(keys) ? keys : Arr.of(value), (key) => Redacted.make(key))
}

/** Returns the configured keys: those in NOTARY_KEY, otherwise those in NOTARY_KEY_FILE. */
export const configuredKeys = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const { notaryKey, notaryKeyFile } = yield* AppConfig
  if (Option.isSome(notaryKey) || Option.isNone(notaryKeyFile)) return Option.map(notaryKey, keysIn)
  const text = yield* fs.readFileString(notaryKeyFile.value).pipe(Effect.catchTag("PlatformError", unusable("NOTARY_KEY_FILE")))
  return Option.some(keysIn(Redacted.make(text)))
})

/** Fails because the configured keys are invalid. The error names their setting and the reason. */
export const refuse = ({ message }: { readonly message: string }) =>
  Effect.flatMap(AppConfig, ({ notaryKey }) =>
    Effect.fail(new InvalidSetting({ message: `${Option.isSome(notaryKey) ? "NOTARY_KEY" : "NOTARY_KEY_FILE"}: ${message}` }))
  )

/**
 * Returns the configured keys. Without them, generates a key for an embedded database and stores it in DATA_DIR. Returns none for
 * an external database, because all its replicas need the same key and must not generate different keys.
 */
export const findKeys = Effect.gen(function* () {
  const path = yield* Path.Path
  const { dataDir, databaseUrl } = yield* AppConfig
  const given = yield* configuredKeys
  if (Option.isSome(given) || Option.isSome(databaseUrl)) return given
  return Option.some(Arr.of(yield* GeneratedSecret.make(path.resolve(dataDir), "notary-key")))
})

/** The ids of the signing keys, and of all trusted keys. */
export interface KeyIds {
  readonly signers: ReadonlyArray<{ readonly id: number }>
  readonly verifiers: ReadonlyArray<{ readonly id: number }>
}

/**
 * Returns functions that load and save the newest checkpoint, in one file for each key that signed it. With these files the
 * notary detects that an older copy has replaced the database.
 */
export const checkpointFiles = Effect.fnUntraced(function* ({ signers, verifiers }: KeyIds) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const atomic = yield* AtomicFile.make
  const { checkpointMirror, dataDir } = yield* AppConfig
  const fileOf = ({ id }: { readonly id: number }) =>
    path.resolve(dataDir, `notary-${id.toString(16).padStart(8, "0")}.checkpoint`)
  // Also reads the newest checkpoint in the mirror folder, for a machine that has lost its own files.
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
              Effect.logWarning(`The newest checkpoint cannot be written to ${file}`, error)
            )
          ),
      { discard: true }
    )
  /** Saves a checkpoint. Renames the files of previous checkpoints, because they are evidence. */
  const replace = (note: string) =>
    Effect.forEach(files, (file) => Effect.catchTag(fs.rename(file, `${file}.replaced`), "PlatformError", () => Effect.void), {
      discard: true
    }).pipe(Effect.andThen(saveSeen(note)))
  return { loadSeen, saveSeen, replace }
})
