/** Selects the public keys that a verification uses. */
import { Effect, FileSystem, Option, Path, Result, Schema } from "effect"
import { exportFiles } from "#events/log/export/ExportReadme.ts"
import * as Checkpoint from "#events/log/merkle/Checkpoint.ts"
import { parse as parseProof } from "#events/log/merkle/Proof.ts"
import { parseVerifiers, type Verifiers } from "#events/log/merkle/NoteKeys.ts"
import { keysOf, type LogKeys } from "#events/log/notary/LogSigner.ts"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"
import * as NotaryKeys from "#infra/security/NotaryKeys.ts"

/** The public keys of a verification. `note` is a warning about the origin of the keys, which the command prints to standard error. */
export interface UsedKeys {
  readonly verifiers: Verifiers
  readonly note: string | null
}

/** There is no public key to verify with, or no export to verify. */
class NoVerifierKey extends Schema.TaggedError<NoVerifierKey>()("NoVerifierKey", { message: Schema.String }) {}

const howToGetKey =
  "Give the log's public key with --key. The service logs it when it starts, and `vatproof notary verifier` prints it"

const inText = (text: string) =>
  Effect.map(Effect.fromResult(parseVerifiers(pureCrypto, text)), (verifiers): UsedKeys => ({ verifiers, note: null }))

/**
 * Returns the public keys in `text`, or in the file whose path is `text`. Text with a plus sign is taken for keys, unless a file with
 * that path exists.
 */
export const fromText = Effect.fnUntraced(function* (text: string) {
  const fs = yield* FileSystem.FileSystem
  const isKey = text.includes("+") && !(yield* Effect.orElseSucceed(fs.exists(text), () => false))
  return yield* inText(isKey ? text : yield* fs.readFileString(text))
})

export const forDatabase = (key: Option.Option<string>, keys: Option.Option<LogKeys>) =>
  Option.match(key, {
    onSome: fromText,
    onNone: () =>
      Option.match(keys, {
        onSome: ({ verifiers }) => Effect.succeed<UsedKeys>({ verifiers, note: null }),
        onNone: () => Effect.fail(new NoVerifierKey({ message: `NOTARY_KEY is not set. ${howToGetKey}` }))
      })
  })

/**
 * Returns the public keys of the signing keys that are configured on this machine; None without configured keys. A public key includes
 * the name of its log. This function reads the name from `checkpoint`.
 */
const configuredKeys = Effect.fnUntraced(function* (checkpoint: string) {
  const keys = yield* NotaryKeys.configuredKeys
  if (Option.isNone(keys)) return Option.none<UsedKeys>()
  const name = Option.getOrElse(Checkpoint.originOf(checkpoint), () => "log")
  const { verifiers } = yield* Effect.catchTag(
    Effect.fromResult(keysOf(pureCrypto, keys.value, name)),
    "MalformedKey",
    NotaryKeys.refuse
  )
  return Option.some<UsedKeys>({ verifiers, note: null })
})

/**
 * Returns the keys that verify an export: the keys of the option --key, otherwise the keys configured on this machine, otherwise the
 * key in the export. The key in an export proves that the export is consistent, but not who signed it.
 */
export const forExport = Effect.fnUntraced(function* (key: Option.Option<string>, directory: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  if (Option.isSome(key)) return yield* fromText(key.value)
  const checkpoint = path.join(directory, exportFiles.checkpoint)
  const found = (yield* fs.exists(checkpoint)) ? yield* configuredKeys(yield* fs.readFileString(checkpoint)) : Option.none()
  if (Option.isSome(found)) return found.value
  const beside = path.join(directory, exportFiles.verifier)
  if (!(yield* fs.exists(directory))) return yield* new NoVerifierKey({ message: `There is no export in ${directory}` })
  if (!(yield* fs.exists(beside))) return yield* new NoVerifierKey({ message: `The export has no public key. ${howToGetKey}` })
  const { verifiers } = yield* inText(yield* fs.readFileString(beside))
  const note = `Verified with the key in the export, which the creator of the export chose. Compare it with a key that you know. To verify with another key: ${howToGetKey}`
  return { verifiers, note } satisfies UsedKeys
})

export const forProof = Effect.fnUntraced(function* (key: Option.Option<string>, proof: string) {
  if (Option.isSome(key)) return yield* fromText(key.value)
  const checkpoint = Option.getOrElse(
    Option.map(Result.getSuccess(parseProof(proof)), (parsed) => parsed.checkpoint),
    () => ""
  )
  const found = yield* configuredKeys(checkpoint)
  if (Option.isSome(found)) return found.value
  return yield* new NoVerifierKey({
    message: `The public key of the log is missing, because a proof does not contain it. ${howToGetKey}`
  })
})
