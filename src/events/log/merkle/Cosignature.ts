/**
 * Witness cosignatures as C2SP tlog-cosignature defines them (c2sp.org/tlog-cosignature, read 2026-11-23), Ed25519 only
 * (`cosignature/v1`). A cosignature contains a time. It states that the witness had seen no larger checkpoint of the log before
 * this time. It also states that the checkpoint extends all smaller checkpoints that the witness had seen.
 */
import { type Array as Arr, DateTime, Option, Result, Schema } from "effect"
import { parseCount } from "#events/log/merkle/Checkpoint.ts"
import type { PureCrypto } from "#domain/kernel/Crypto.ts"
import { everyKey, keyType, type MalformedKey, parseVerifier, type Verifier } from "#events/log/merkle/NoteKeys.ts"
import { parse } from "#events/log/merkle/SignedNote.ts"

/** A signature line has the name and key id of a known witness, but the signature is invalid. */
export class CosignatureForged extends Schema.TaggedError<CosignatureForged>()("CosignatureForged", { witness: Schema.String }) {
  override get message() {
    return `The cosignature of ${this.witness} is invalid`
  }
}

/** The name of a witness, and the time of its cosignature. The text of the note existed at this time. */
export interface Cosignature {
  readonly witness: string
  readonly at: DateTime.Utc
}

/** Length in bytes of the timestamp that precedes the Ed25519 signature: seconds since 1970, big-endian. */
const timeLength = 8

const utf8 = new TextEncoder()

/** Returns the bytes that a witness signs: the time and the text of the note. */
export const messageOf = (seconds: number, text: string) => utf8.encode(`cosignature/v1\ntime ${seconds}\n${text}`)

/** Parses the public keys of witnesses: `<name>+<8 hex digits>+<base64>` with the key type of cosignatures. */
export const parseWitnesses = (
  crypto: PureCrypto,
  texts: Arr.NonEmptyReadonlyArray<string>
): Result.Result<Arr.NonEmptyReadonlyArray<Verifier>, MalformedKey> =>
  everyKey(texts, (text) => parseVerifier(crypto, text.trim(), keyType.cosignature))

/** Returns the cosignatures of `witnesses` in a note. Ignores signatures of other keys. Fails if a witness's cosignature is invalid. */
export const cosignaturesIn = (
  crypto: PureCrypto,
  note: string,
  witnesses: ReadonlyArray<Verifier>
): Result.Result<ReadonlyArray<Cosignature>, CosignatureForged> =>
  Option.match(Result.getSuccess(parse(note)), {
    onNone: () => Result.succeed([]),
    onSome: ({ signatures, text }) =>
      Result.all(
        signatures.flatMap((signature) =>
          witnesses
            .filter(({ id, name }) => id === signature.id && name === signature.name)
            .map((witness) => read(crypto, text, witness, signature.bytes))
        )
      )
  })

const read = (
  crypto: PureCrypto,
  text: string,
  { name, publicKey }: Verifier,
  bytes: Uint8Array
): Result.Result<Cosignature, CosignatureForged> => {
  const forged = Result.fail(new CosignatureForged({ witness: name }))
  if (bytes.length !== timeLength + 64) return forged
  const time = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0)
  const seconds = parseCount(String(time))
  const at = Option.flatMap(seconds, (count) => DateTime.make(count * 1000))
  if (Option.isNone(seconds) || Option.isNone(at)) return forged
  const isOwn = crypto.verifyEd25519(publicKey, messageOf(seconds.value, text), bytes.subarray(timeLength))
  return isOwn ? Result.succeed({ witness: name, at: at.value }) : forged
}
