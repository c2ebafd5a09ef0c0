/**
 * Checkpoints as C2SP tlog-checkpoint v1.0.0 defines them (c2sp.org/tlog-checkpoint, version of 2026-07-11): a signed note with
 * the size of a log and its root.
 */
import { Option, Result, Schema } from "effect"
import { Base64 } from "effect/encoding"
import type { PureCrypto } from "#domain/kernel/Crypto.ts"
import { hashLength, type Hash } from "#events/log/merkle/MerkleTree.ts"
import { decodeBase64, type Signer, type Verifier } from "#events/log/merkle/NoteKeys.ts"
import { open as openNote, parse as parseNote, sign as signNote, type NoteRefused } from "#events/log/merkle/SignedNote.ts"

/** The note is malformed, or belongs to another log. */
export class CheckpointRefused extends Schema.TaggedError<CheckpointRefused>()("CheckpointRefused", {
  reason: Schema.Literals(["malformed", "other_origin"]),
  message: Schema.String
}) {}

/** `origin` names the log, `size` counts its entries. `extensions` are additional lines, which Vatproof never writes. */
export interface Checkpoint {
  readonly origin: string
  readonly size: number
  readonly root: Hash
  readonly extensions: ReadonlyArray<string>
}

const refused = (reason: CheckpointRefused["reason"], message: string) => Result.fail(new CheckpointRefused({ reason, message }))

/** Returns a checkpoint as the text of a note: origin, size and root, one per line. */
export const format = ({ origin, size, root, extensions }: Checkpoint): string =>
  [origin, String(size), Base64.encode(root), ...extensions, ""].join("\n")

/** Parses the text of a note. Rejects a size above 2^53 − 1, which a JavaScript number cannot represent exactly. */
export const parse = (text: string): Result.Result<Checkpoint, CheckpointRefused> => {
  const lines = text.split("\n")
  if (lines.pop() !== "" || lines.includes(""))
    return refused("malformed", "Every line of a checkpoint has text and ends in a newline")
  const [origin, size, root, ...extensions] = lines
  if (origin === undefined || size === undefined || root === undefined) {
    return refused("malformed", "A checkpoint needs an origin, a size and a root")
  }
  const count = parseCount(size)
  if (Option.isNone(count)) return refused("malformed", "A checkpoint's size is a whole number below 2^53 without leading zeros")
  return Option.match(parseHash(root), {
    onNone: () => refused("malformed", "A checkpoint's root is 32 bytes in base64"),
    onSome: (hash) => Result.succeed({ origin, size: count.value, root: hash, extensions })
  })
}

/** Parses a number in ASCII digits without leading zeros, the form of sizes and indexes in checkpoints and proofs. */
export const parseCount = (text: string): Option.Option<number> =>
  Option.filter(/^(?:0|[1-9]\d{0,15})$/u.test(text) ? Option.some(Number(text)) : Option.none(), Number.isSafeInteger)

/** Parses a hash in base64. */
export const parseHash = (text: string): Option.Option<Hash> =>
  Option.filter(decodeBase64(text), (bytes) => bytes.length === hashLength)

/** Returns the log's name from a note, without verifying the note. None if the text is not a checkpoint. */
export const originOf = (note: string): Option.Option<string> =>
  Option.map(Result.getSuccess(Result.flatMap(parseNote(note), ({ text }) => parse(text))), ({ origin }) => origin)

/**
 * Signs a checkpoint as a note. Parses the text again before it signs, so that it never signs text that a verifier would reject or read
 * differently.
 */
export const sign = (
  checkpoint: Checkpoint,
  signers: ReadonlyArray<Signer>
): Result.Result<string, NoteRefused | CheckpointRefused> =>
  Result.gen(function* () {
    const text = format(checkpoint)
    const read = yield* parse(text)
    if (read.origin !== checkpoint.origin) return yield* refused("malformed", "A checkpoint's origin is one line")
    return yield* signNote(text, signers)
  })

/** Returns the keys that signed a note. */
export const signersOf = <A extends Verifier>(crypto: PureCrypto, note: string, verifiers: ReadonlyArray<A>) =>
  verifiers.filter((verifier) => Result.isSuccess(openNote(crypto, note, [verifier])))

/** Returns the checkpoint in a note. Fails unless a key of the log signed the note and the checkpoint has the log's origin. */
export const open = (
  crypto: PureCrypto,
  note: string,
  log: { readonly origin: string; readonly verifiers: ReadonlyArray<Verifier> }
): Result.Result<Checkpoint, NoteRefused | CheckpointRefused> =>
  Result.gen(function* () {
    const checkpoint = yield* parse(yield* openNote(crypto, note, log.verifiers))
    if (checkpoint.origin === log.origin) return checkpoint
    return yield* refused("other_origin", `The checkpoint belongs to ${checkpoint.origin}, not to ${log.origin}`)
  })
