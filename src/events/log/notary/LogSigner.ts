/** The log's name and its keys, parsed from the configuration. */
import { Array as Arr, Context, Effect, Layer, Option, Redacted, Result } from "effect"
import { Base64Url } from "effect/encoding"
import * as Checkpoint from "#events/log/merkle/Checkpoint.ts"
import { Crypto, type PureCrypto } from "#domain/kernel/Crypto.ts"
import {
  everyKey,
  formatSigningKey,
  MalformedKey,
  ofOneLog,
  parseSigner,
  parseVerifier,
  type Signer,
  type Verifier,
  type Verifiers
} from "#events/log/merkle/NoteKeys.ts"
import { TreeStore } from "#events/log/notary/TreeStore.ts"

/**
 * The keys of a log. All `signers` sign every checkpoint. `verifiers` are the trusted public keys: the keys of the signers, then former
 * keys.
 */
export interface LogKeys {
  readonly name: string
  readonly signers: Arr.NonEmptyReadonlyArray<Signer>
  readonly verifiers: Verifiers
}

/** A private key that contains its name (Go's note format). */
const namedKey = /^PRIVATE\+KEY\+(?<name>[^+]+)\+/u
/** A seed of 32 bytes in base64url, the form of a key that the service generated. */
const seedForm = /^[\w-]{43}$/u
/** A public key. (A PEM does not match, because it has white space before the first plus sign.) */
const verifierForm = /^[^+\s]+\+[\da-f]{8}\+/u

/** Parses a signing key. A key in Go's format (`PRIVATE+KEY+<name>…`) has its own name; a PKCS #8 PEM or a seed gets the log's name. */
const signerOf = (crypto: PureCrypto, secret: Redacted.Redacted, logName: string): Result.Result<Signer, MalformedKey> => {
  const text = Redacted.value(secret).trim()
  const seed = seedForm.test(text) ? Option.getOrNull(Result.getSuccess(Base64Url.decode(text))) : null
  if (seed === null) return parseSigner(crypto, namedKey.exec(text)?.groups?.["name"] ?? logName, secret)
  return Result.flatMap(formatSigningKey(crypto, logName, Redacted.make(seed)), (named) => parseSigner(crypto, logName, named))
}

const distinct = <A extends Verifier>(keys: Arr.NonEmptyReadonlyArray<A>) =>
  Arr.dedupeWith(keys, (one, other) => one.id === other.id)

const isSigner = (key: Signer | Verifier): key is Signer => "sign" in key

/**
 * Parses a list of keys: at least one signing key, and the public keys of former signing keys. A key without a name gets the name
 * `logName`.
 */
export const parseKeys = (crypto: PureCrypto, texts: Arr.NonEmptyReadonlyArray<Redacted.Redacted>, logName: string) =>
  Result.gen(function* () {
    const keys = yield* everyKey<Redacted.Redacted, Signer | Verifier>(texts, (text) =>
      verifierForm.test(Redacted.value(text)) ? parseVerifier(crypto, Redacted.value(text)) : signerOf(crypto, text, logName)
    )
    const signing = keys.filter(isSigner)
    if (!Arr.isReadonlyArrayNonEmpty(signing))
      return yield* Result.fail(new MalformedKey({ message: "All keys are public keys; add a signing key" }))
    return { keys, signing }
  })

/** Parses a list of keys that must all belong to one log. */
export const keysOf = (
  crypto: PureCrypto,
  texts: Arr.NonEmptyReadonlyArray<Redacted.Redacted>,
  logName: string
): Result.Result<LogKeys, MalformedKey> =>
  Result.gen(function* () {
    const { keys, signing } = yield* parseKeys(crypto, texts, logName)
    const signers = yield* ofOneLog(distinct(signing))
    const verifiers = yield* ofOneLog(distinct<Verifier>([...signers, ...keys]))
    return { name: signers[0].name, signers, verifiers }
  })

/**
 * `name` is the name of a log without checkpoints. A signed log keeps the name in its checkpoints. Without `keys` the log is not
 * signed.
 */
export interface LogSignerOptions {
  readonly keys: Option.Option<Arr.NonEmptyReadonlyArray<Redacted.Redacted>>
  readonly name: string
}

const make = Effect.fnUntraced(function* ({ keys: texts, name }: LogSignerOptions) {
  const crypto = yield* Crypto
  const tree = yield* TreeStore
  const newest = yield* tree.newest
  const logName = newest.pipe(
    Option.flatMap(({ note }) => Checkpoint.originOf(note)),
    Option.getOrElse(() => name)
  )
  if (Option.isNone(texts)) return { origin: logName, keys: Option.none<LogKeys>() }
  const keys = yield* Effect.fromResult(keysOf(crypto, texts.value, logName))
  return { origin: keys.name, keys: Option.some(keys) }
})

export class LogSigner extends Context.Service<LogSigner, { readonly origin: string; readonly keys: Option.Option<LogKeys> }>()(
  "vatproof/events/log/notary/LogSigner"
) {
  /** Fails with MalformedKey if a key is malformed or the keys have different names. */
  static readonly layer = (options: LogSignerOptions) => Layer.effect(LogSigner, make(options))
}
