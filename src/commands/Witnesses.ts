/**
 * Reads the cosignatures of independent witnesses on the checkpoints that an audit has verified, and reports what each witness saw and
 * when. docs/audit.md explains these terms.
 */
import { Array as Arr, DateTime, Effect, FileSystem } from "effect"
import { Flag } from "effect/cli"
import * as Checkpoint from "#events/log/merkle/Checkpoint.ts"
import { cosignaturesIn, parseWitnesses } from "#events/log/merkle/Cosignature.ts"
import type { Verifier } from "#events/log/merkle/NoteKeys.ts"
import { parse as parseNote } from "#events/log/merkle/SignedNote.ts"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"

export const witness = Flag.String("witness").pipe(
  Flag.between(0, 20),
  Flag.withDescription("The public key of a witness, or a file with it: prints when the witness saw the log; repeatable")
)

/** A witness cosigned a checkpoint of the first `events` events at the time `at`. */
export interface Sighting {
  readonly witness: string
  readonly events: number
  readonly at: string
}

/**
 * Returns the public keys of witnesses. A text that is the path of an existing file stands for the key in that file. Any other text is
 * a key.
 */
export const witnessesOf = Effect.fnUntraced(function* (texts: ReadonlyArray<string>) {
  const fs = yield* FileSystem.FileSystem
  const read = Effect.fnUntraced(function* (text: string) {
    const isFile = yield* Effect.orElseSucceed(fs.exists(text), () => false)
    return isFile ? yield* fs.readFileString(text) : text
  })
  const keys = yield* Effect.forEach(texts, read)
  return Arr.isReadonlyArrayNonEmpty(keys) ? yield* Effect.fromResult(parseWitnesses(pureCrypto, keys)) : Arr.empty<Verifier>()
})

/** Returns the cosignatures of the given witnesses in verified checkpoints. Fails if a cosignature is forged. */
export const sightingsIn = Effect.fnUntraced(function* (notes: ReadonlyArray<string>, witnesses: ReadonlyArray<Verifier>) {
  const found: Array<Sighting> = []
  for (const note of notes) {
    const { text } = yield* Effect.fromResult(parseNote(note))
    const { size } = yield* Effect.fromResult(Checkpoint.parse(text))
    for (const { at, witness } of yield* Effect.fromResult(cosignaturesIn(pureCrypto, note, witnesses))) {
      found.push({ witness, events: size, at: DateTime.formatIso(at) })
    }
  }
  return found
})

/**
 * Formats cosignatures as text. Without cosignatures, returns a sentence that says so. If the operator named no witness (`asked` is 0),
 * returns empty text instead.
 */
export const wordsOf = (sightings: ReadonlyArray<Sighting>, asked: number) =>
  sightings.length === 0
    ? asked === 0
      ? ""
      : "\nNone of these checkpoints has a cosignature of a witness that you named."
    : sightings
        .map(({ at, events, witness }) => `\n${witness} saw the first ${events} events on ${at}: all of them existed then.`)
        .join("")
