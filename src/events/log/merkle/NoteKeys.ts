/**
 * The Ed25519 keys of signed notes, as C2SP signed-note v1.0.0 writes them (c2sp.org/signed-note, version of 2026-04-09).
 * Compatible with the public and private keys of Go's sumdb/note.
 */
import { Array as Arr, Option, Redacted, Result, Schema } from "effect"
import { Base64 } from "effect/encoding"
import type { KeyPair, PureCrypto } from "#domain/kernel/Crypto.ts"

/** The text of a key is malformed. The message never contains the key. */
export class MalformedKey extends Schema.TaggedError<MalformedKey>()("MalformedKey", { message: Schema.String }) {}

/** A public key. Signature lines contain its name and its 32-bit `id`. */
export interface Verifier {
  readonly name: string
  readonly id: number
  readonly publicKey: Uint8Array
}

/** A private key that signs as `name`. */
export interface Signer extends Verifier {
  readonly sign: KeyPair["sign"]
}

/** Keys of one log; all have its name. */
export type Verifiers = Arr.NonEmptyReadonlyArray<Verifier>

/** The signature type bytes of Ed25519: for notes and for witness cosignatures (Cosignature.ts). */
export const keyType = { note: 0x01, cosignature: 0x04 } as const
type KeyType = (typeof keyType)[keyof typeof keyType]

const utf8 = new TextEncoder()

/** Returns true for well-formed text without control characters other than newline. */
export const isNoteText = (text: string): boolean => {
  for (let i = 0; i < text.length; i += 1) {
    if (text.charCodeAt(i) < 0x20 && text.charAt(i) !== "\n") return false
  }
  return text.isWellFormed()
}

export const isName = (name: string) => /^[^\p{White_Space}+]+$/u.test(name) && isNoteText(name)

/** Decodes base64 with padding. None if the text is not exactly the encoding of its bytes. */
export const decodeBase64 = (text: string): Option.Option<Uint8Array> =>
  Option.filter(Result.getSuccess(Base64.decode(text)), (bytes) => Base64.encode(bytes) === text)

const keyId = (crypto: PureCrypto, name: string, publicKey: Uint8Array, type: KeyType = keyType.note): number => {
  const digest = crypto.sha256(Uint8Array.of(...utf8.encode(name), 0x0a, type, ...publicKey))
  return new DataView(digest.buffer, digest.byteOffset).getUint32(0)
}

const hexId = (id: number) => id.toString(16).padStart(8, "0")

/** Returns a key as text: `<name>+<id in hex>+<base64 of type and key>`. */
const keyText = ({ name, id }: Verifier, key: Uint8Array, type: KeyType = keyType.note) =>
  `${name}+${hexId(id)}+${Base64.encode(Uint8Array.of(type, ...key))}`

const keyPattern = /^(?<name>[^+]+)\+(?<id>[\da-f]{8})\+(?<key>[A-Za-z\d+/]+=*)$/u

/** Parses the text of a public or private key into name, id and the 32 bytes of the key. */
const readKeyText = (text: string, type: KeyType = keyType.note) =>
  Option.gen(function* () {
    const { name, id, key } = keyPattern.exec(text)?.groups ?? {}
    if (name === undefined || id === undefined || key === undefined || !isName(name)) return yield* Option.none()
    const bytes = yield* decodeBase64(key)
    if (bytes[0] !== type || bytes.length !== 33) return yield* Option.none()
    return { name, id: Number.parseInt(id, 16), bytes: bytes.subarray(1) }
  })

const malformedKey = (message: string) => Result.fail(new MalformedKey({ message }))

/** Parses a verifier key (`vkey`), for example `example.com/log+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k`. */
export const parseVerifier = (
  crypto: PureCrypto,
  text: string,
  type: KeyType = keyType.note
): Result.Result<Verifier, MalformedKey> => {
  const key = Option.getOrUndefined(readKeyText(text, type))
  if (key === undefined) return malformedKey("A verifier key is <name>+<8 hex digits>+<base64>, with an Ed25519 key")
  if (keyId(crypto, key.name, key.bytes, type) !== key.id)
    return malformedKey(`The id in the verifier key of ${key.name} does not match the key`)
  return Result.succeed({ name: key.name, id: key.id, publicKey: key.bytes })
}

/** Parses one or more verifier keys of one log, separated by white space. */
export const parseVerifiers = (crypto: PureCrypto, text: string): Result.Result<Verifiers, MalformedKey> => {
  const [first = "", ...rest] = text.match(/\S+/gu) ?? []
  return Result.flatMap(
    everyKey([first, ...rest], (one) => parseVerifier(crypto, one)),
    ofOneLog
  )
}

/** Parses each text as a key. If there are several texts, the error states which of them is malformed, for example `Key 2 of 3`. */
export const everyKey = <Text, A>(
  texts: Arr.NonEmptyReadonlyArray<Text>,
  read: (text: Text) => Result.Result<A, MalformedKey>
): Result.Result<Arr.NonEmptyReadonlyArray<A>, MalformedKey> => {
  const place = (index: number) => (texts.length === 1 ? "" : `Key ${index + 1} of ${texts.length}: `)
  return Result.all(
    Arr.map(texts, (text, index) =>
      Result.mapError(read(text), ({ message }) => new MalformedKey({ message: `${place(index)}${message}` }))
    )
  )
}

/** Rejects keys with different names, which belong to different logs. */
export const ofOneLog = <Keys extends Verifiers>(keys: Keys): Result.Result<Keys, MalformedKey> => {
  const other = keys.find(({ name }) => name !== keys[0].name)
  if (other === undefined) return Result.succeed(keys)
  return malformedKey(`The keys belong to different logs: ${keys[0].name} and ${other.name}`)
}

/** Formats the verifier key (`vkey`) of a log. */
export const formatVerifier = (verifier: Verifier): string => keyText(verifier, verifier.publicKey)

const privatePrefix = "PRIVATE+KEY+"

/**
 * Parses a private key that signs as `name`: Go's `PRIVATE+KEY+<name>+<id>+<base64>` with that name, or an unencrypted PKCS #8 PEM.
 * Ignores white space around the key, which files often have.
 */
export const parseSigner = (
  crypto: PureCrypto,
  name: string,
  secret: Redacted.Redacted<string>
): Result.Result<Signer, MalformedKey> => {
  if (!isName(name))
    return malformedKey("The name of a key must not be empty or contain spaces, plus signs or control characters")
  const text = Redacted.value(secret).trim()
  if (!text.startsWith(privatePrefix)) {
    return Option.match(crypto.keyPairFromPem(text), {
      onNone: () => malformedKey(`A signing key is an Ed25519 key: ${privatePrefix}… or an unencrypted PKCS #8 PEM`),
      onSome: (pair) => Result.succeed(signerOf(crypto, name, pair))
    })
  }
  const key = Option.getOrUndefined(readKeyText(text.slice(privatePrefix.length)))
  const pair = key === undefined ? undefined : Option.getOrUndefined(crypto.keyPairFromSeed(key.bytes))
  if (key === undefined || pair === undefined)
    return malformedKey(`A signing key is ${privatePrefix}<name>+<8 hex digits>+<base64>`)
  if (key.name !== name) return malformedKey(`The signing key belongs to ${key.name}, not to ${name}`)
  const signer = signerOf(crypto, name, pair)
  return signer.id === key.id
    ? Result.succeed(signer)
    : malformedKey(`The id in the signing key of ${name} does not match the key`)
}

const signerOf = (crypto: PureCrypto, name: string, pair: KeyPair): Signer => ({
  name,
  id: keyId(crypto, name, pair.publicKey),
  publicKey: pair.publicKey,
  sign: pair.sign
})

/** Formats a new private key from 32 secret random bytes, in the form that `parseSigner` and Go's note package read. */
export const formatSigningKey = (
  crypto: PureCrypto,
  name: string,
  seed: Redacted.Redacted<Uint8Array>
): Result.Result<Redacted.Redacted<string>, MalformedKey> =>
  Option.match(isName(name) ? crypto.keyPairFromSeed(Redacted.value(seed)) : Option.none(), {
    onNone: () => malformedKey("A signing key needs a name without spaces and plus signs, and a seed of 32 bytes"),
    onSome: (pair) =>
      Result.succeed(Redacted.make(`${privatePrefix}${keyText(signerOf(crypto, name, pair), Redacted.value(seed))}`))
  })
