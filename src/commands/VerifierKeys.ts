/** Which public key an audit verifies with, and what is to be said about where it comes from. */
import { Effect, FileSystem, Option, Path, Result, Schema } from "effect"
import { exportFiles } from "#events/audit/ExportReadme.ts"
import * as Checkpoint from "#events/log/Checkpoint.ts"
import { parse as parseProof } from "#events/log/Proof.ts"
import { parse as parseNote } from "#events/log/SignedNote.ts"
import { parseVerifier, type Verifier } from "#events/log/NoteKeys.ts"
import { signerOf } from "#events/LogSigner.ts"
import { logCrypto } from "#infra/LogCrypto.ts"
import * as NotaryFiles from "#infra/NotaryFiles.ts"

/** `note` is a caution that goes to standard error. */
export interface UsedKey {
  readonly verifier: Verifier
  readonly note: string | null
}

class NoVerifierKey extends Schema.TaggedError<NoVerifierKey>()("NoVerifierKey", { message: Schema.String }) {}

const which = "give the log's public key with --key; the service prints it at its start, and `vatproof notary verifier` does"

/** A key that was given is the text itself, or a file that holds it. */
const given = Effect.fnUntraced(function* (text: string) {
  const fs = yield* FileSystem.FileSystem
  const content = text.includes("+") ? text : yield* fs.readFileString(text)
  return { verifier: yield* Effect.fromResult(parseVerifier(logCrypto, content.trim())), note: null } satisfies UsedKey
})

export const forDatabase = (key: Option.Option<string>, signer: Option.Option<Verifier>) =>
  Option.match(key, {
    onSome: given,
    onNone: () =>
      Option.match(signer, {
        onSome: (verifier) => Effect.succeed<UsedKey>({ verifier, note: null }),
        onNone: () => Effect.fail(new NoVerifierKey({ message: `There is no NOTARY_KEY here: ${which}` }))
      })
  })

const nameIn = (note: string): Option.Option<string> =>
  Option.map(Result.getSuccess(Result.flatMap(parseNote(note), ({ text }) => Checkpoint.parse(text))), ({ origin }) => origin)

/** The key of the service whose settings these are, where there is one. */
const own = Effect.fnUntraced(function* (note: string) {
  const secret = yield* NotaryFiles.givenKey
  if (Option.isNone(secret)) return Option.none<UsedKey>()
  const name = Option.getOrElse(nameIn(note), () => "log")
  return Option.some<UsedKey>({ verifier: yield* Effect.fromResult(signerOf(logCrypto, secret.value, name)), note: null })
})

/** The key that comes with an export proves that the export is in itself right, but not whose it is. */
export const forExport = Effect.fnUntraced(function* (key: Option.Option<string>, directory: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  if (Option.isSome(key)) return yield* given(key.value)
  const checkpoint = path.join(directory, exportFiles.checkpoint)
  const found = (yield* fs.exists(checkpoint)) ? yield* own(yield* fs.readFileString(checkpoint)) : Option.none()
  if (Option.isSome(found)) return found.value
  const beside = path.join(directory, exportFiles.verifier)
  if (!(yield* fs.exists(beside))) return yield* new NoVerifierKey({ message: `Which key? ${which}` })
  const { verifier } = yield* given(beside)
  const note = `Verified with the key that lies in the export. Whoever made the export chose it: compare it with one you know, or ${which}`
  return { verifier, note } satisfies UsedKey
})

export const forProof = Effect.fnUntraced(function* (key: Option.Option<string>, proof: string) {
  if (Option.isSome(key)) return yield* given(key.value)
  const note = Option.getOrElse(
    Option.map(Result.getSuccess(parseProof(proof)), ({ checkpoint }) => checkpoint),
    () => ""
  )
  const found = yield* own(note)
  if (Option.isSome(found)) return found.value
  return yield* new NoVerifierKey({ message: `Which key? ${which}` })
})
