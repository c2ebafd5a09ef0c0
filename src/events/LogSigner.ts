/** The name of the log and the key that signs in it. The key comes from outside; nothing here stores it. */
import { Context, Effect, Layer, Option, Redacted, Result } from "effect"
import { Base64Url } from "effect/encoding"
import * as Checkpoint from "#events/log/Checkpoint.ts"
import { LogCrypto } from "#events/log/LogCrypto.ts"
import { formatSigningKey, type MalformedKey, parseSigner, type Signer } from "#events/log/NoteKeys.ts"
import { parse as parseNote } from "#events/log/SignedNote.ts"
import { TreeStore } from "#events/TreeStore.ts"

/** The name inside a key that carries one (Go's note format). */
const namedKey = /^PRIVATE\+KEY\+(?<name>[^+]+)\+/u
/** A seed of 32 bytes in base64url, as an installation keeps it for itself. */
const seedForm = /^[\w-]{43}$/u

/**
 * The signer of a key: a named one (`PRIVATE+KEY+…`) signs in its own name, and a PKCS #8 PEM or a bare seed in that of the log.
 * Surrounding white space is ignored.
 */
export const signerOf = (
  crypto: LogCrypto["Service"],
  secret: Redacted.Redacted,
  logName: string
): Result.Result<Signer, MalformedKey> => {
  const text = Redacted.value(secret).trim()
  const seed = seedForm.test(text) ? Option.getOrNull(Result.getSuccess(Base64Url.decode(text))) : null
  if (seed === null) return parseSigner(crypto, namedKey.exec(text)?.groups?.["name"] ?? logName, secret)
  return Result.flatMap(formatSigningKey(crypto, logName, Redacted.make(seed)), (named) => parseSigner(crypto, logName, named))
}

/** What its newest checkpoint calls the log. */
const nameIn = (note: string): Option.Option<string> =>
  Result.getSuccess(Result.flatMap(parseNote(note), ({ text }) => Checkpoint.parse(text))).pipe(
    Option.map(({ origin }) => origin)
  )

/** `name` is for a log that was never signed: the first checkpoint settles it for good. Without a secret nothing is signed. */
export interface LogSignerOptions {
  readonly secret: Option.Option<Redacted.Redacted>
  readonly name: string
}

const make = Effect.fnUntraced(function* ({ name, secret }: LogSignerOptions) {
  const crypto = yield* LogCrypto
  const tree = yield* TreeStore
  const newest = yield* tree.newest
  const logName = newest.pipe(
    Option.flatMap(({ note }) => nameIn(note)),
    Option.getOrElse(() => name)
  )
  if (Option.isNone(secret)) return { origin: logName, signer: Option.none<Signer>() }
  const signer = yield* Effect.fromResult(signerOf(crypto, secret.value, logName))
  return { origin: signer.name, signer: Option.some(signer) }
})

export class LogSigner extends Context.Service<LogSigner, { readonly origin: string; readonly signer: Option.Option<Signer> }>()(
  "vatproof/events/LogSigner"
) {
  /** Fails with MalformedKey. */
  static readonly layer = (options: LogSignerOptions) => Layer.effect(LogSigner, make(options))
}
