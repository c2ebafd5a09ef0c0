/**
 * Signed notes as C2SP signed-note v1.0.0 defines them (c2sp.org/signed-note, version of 2026-04-09), Ed25519 only: a text that
 * ends in a newline, an empty line, and one line per signature.
 */
import { Option, Result, Schema } from "effect"
import { Base64 } from "effect/encoding"
import type { PureCrypto } from "#domain/kernel/Crypto.ts"
import { decodeBase64, isName, isNoteText, type Signer, type Verifier } from "#events/log/merkle/NoteKeys.ts"

/** The note is malformed or has no valid signature, so its text must not be trusted. */
export class NoteRefused extends Schema.TaggedError<NoteRefused>()("NoteRefused", {
  reason: Schema.Literals([
    "malformed",
    "forged", // the signature of a known key is invalid
    "unsigned" // no known key has signed the note
  ]),
  message: Schema.String
}) {}

export interface Signature {
  readonly name: string
  readonly id: number
  /** The signature itself, without the key id before it. The format depends on the type of the key. */
  readonly bytes: Uint8Array
}

export interface Note {
  readonly text: string
  readonly signatures: ReadonlyArray<Signature>
}

/** Maximum number of signatures, which bounds the work of a verifier. The specification requires support for at least 16. */
const maxSignatures = 64

const utf8 = new TextEncoder()

const refused = (reason: NoteRefused["reason"], message: string) => Result.fail(new NoteRefused({ reason, message }))

/** Signs a text, which must end in a newline, with each of the signers in their order. */
export const sign = (text: string, signers: ReadonlyArray<Signer>): Result.Result<string, NoteRefused> => {
  if (!text.endsWith("\n") || !isNoteText(text)) return refused("malformed", "A note is plain text that ends in a newline")
  if (signers.length === 0 || signers.length > maxSignatures)
    return refused("unsigned", `A note has 1 to ${maxSignatures} signatures`)
  const message = utf8.encode(text)
  return Result.succeed(`${text}\n${signers.map((signer) => signatureLine(signer, signer.sign(message))).join("")}`)
}

/** Formats a signature line; `signature` is the part after the key id. */
export const signatureLine = ({ name, id }: Verifier, signature: Uint8Array) => {
  const bytes = new Uint8Array(4 + signature.length)
  new DataView(bytes.buffer).setUint32(0, id)
  bytes.set(signature, 4)
  return `— ${name} ${Base64.encode(bytes)}\n`
}

/** Parses a note without verifying it. */
export const parse = (note: string): Result.Result<Note, NoteRefused> => {
  const end = note.lastIndexOf("\n\n")
  if (end === -1 || !isNoteText(note)) return refused("malformed", "A note is plain text, an empty line and signatures")
  const lines = note.slice(end + 2).split("\n")
  if (lines.pop() !== "" || lines.length === 0) return refused("malformed", "A note ends with a signature line")
  if (lines.length > maxSignatures) return refused("malformed", `A note has at most ${maxSignatures} signatures`)
  return Option.match(Option.all(lines.map(readSignature)), {
    onNone: () => refused("malformed", "A signature line is an em dash, a key's name and a base64 signature"),
    onSome: (signatures) => Result.succeed({ text: note.slice(0, end + 1), signatures })
  })
}

const readSignature = (line: string): Option.Option<Signature> =>
  Option.gen(function* () {
    const { name, signature } = /^— (?<name>[^ ]+) (?<signature>[^ ]+)$/u.exec(line)?.groups ?? {}
    if (name === undefined || signature === undefined || !isName(name)) return yield* Option.none()
    const bytes = yield* decodeBase64(signature)
    if (bytes.length < 5) return yield* Option.none()
    return { name, id: new DataView(bytes.buffer, bytes.byteOffset).getUint32(0), bytes: bytes.subarray(4) }
  })

/**
 * Returns the text of a note if at least one of `verifiers` signed it, and all signatures by these keys are valid. Ignores
 * signatures by other keys, as the specification requires.
 */
export const open = (crypto: PureCrypto, note: string, verifiers: ReadonlyArray<Verifier>): Result.Result<string, NoteRefused> =>
  Result.flatMap(parse(note), ({ text, signatures }) => {
    const message = utf8.encode(text)
    const fromKnownKeys = signatures.flatMap((signature) =>
      verifiers
        .filter(({ name, id }) => name === signature.name && id === signature.id)
        .map((verifier) => ({ verifier, signature }))
    )
    const forged = fromKnownKeys.find(
      ({ verifier, signature }) => !crypto.verifyEd25519(verifier.publicKey, message, signature.bytes)
    )
    if (forged !== undefined) return refused("forged", `The signature of ${forged.verifier.name} is invalid`)
    return fromKnownKeys.length === 0 ? refused("unsigned", "No known key has signed the note") : Result.succeed(text)
  })
