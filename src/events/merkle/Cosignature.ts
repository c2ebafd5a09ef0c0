/**
 * Cosignatures of witnesses as C2SP tlog-cosignature defines them (c2sp.org/tlog-cosignature, read 2026-11-23), with Ed25519 only
 * (`cosignature/v1`): the statement that at a time this was the largest checkpoint of the log that the witness had seen, and that all it saw
 * before are consistent with it.
 */
import { type Array as Arr, DateTime, Option, Result, Schema } from "effect"
import { parseCount } from "#events/merkle/Checkpoint.ts"
import type { PureCrypto } from "#domain/kernel/Crypto.ts"
import {
  everyKey,
  keyType,
  type MalformedKey,
  parseVerifier,
  type Signer,
  type Verifier,
  withType
} from "#events/merkle/NoteKeys.ts"
import { parse, signatureLine } from "#events/merkle/SignedNote.ts"

/** A signature line of a known witness was not made by it. */
export class CosignatureForged extends Schema.TaggedError<CosignatureForged>()("CosignatureForged", { witness: Schema.String }) {
  override get message() {
    return `The cosignature of ${this.witness} is not its own`
  }
}

/** What a witness says with a cosignature: the note's text existed at this time. */
export interface Cosignature {
  readonly witness: string
  readonly at: DateTime.Utc
}

/** The time in front of the Ed25519 signature: seconds since 1970, 64 bits, big-endian. */
const timeLength = 8

const utf8 = new TextEncoder()

const messageOf = (seconds: number, text: string) => utf8.encode(`cosignature/v1\ntime ${seconds}\n${text}`)

/** The public key of a witness, as `<name>+<8 hex digits>+<base64>` of the type of cosignatures. */
export const parseWitnesses = (
  crypto: PureCrypto,
  texts: Arr.NonEmptyReadonlyArray<string>
): Result.Result<Arr.NonEmptyReadonlyArray<Verifier>, MalformedKey> =>
  everyKey(texts, (text) => parseVerifier(crypto, text.trim(), keyType.cosignature))

/** The same key as that of a witness: its id is another one than that of a log's key. */
export const witnessOf = <Key extends Verifier>(crypto: PureCrypto, key: Key): Key => withType(crypto, key, keyType.cosignature)

/** The note with a line more. `witness` comes from `witnessOf`; the caller has verified what it states. */
export const cosign = (note: string, witness: Signer, at: DateTime.Utc): string => {
  const seconds = Math.floor(DateTime.toEpochMillis(at) / 1000)
  const text = note.slice(0, note.lastIndexOf("\n\n") + 1)
  const bytes = new Uint8Array(timeLength + 64)
  new DataView(bytes.buffer).setBigUint64(0, BigInt(seconds))
  bytes.set(witness.sign(messageOf(seconds, text)), timeLength)
  return `${note}${signatureLine(witness, bytes)}`
}

/** The cosignatures of these witnesses in a note; lines of others are ignored. Fails if one is not its witness's own. */
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
