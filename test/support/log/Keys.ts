/** Test keys. `neumann` is the example of Go's note package, `foo` the example of the signed-note specification. */
import { Redacted, Result } from "effect"
import { formatSigningKey, parseSigner, parseVerifier, type Signer, type Verifier } from "#events/log/merkle/NoteKeys.ts"
import type { LogKeys } from "#events/log/notary/LogSigner.ts"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"

export const neumann = {
  name: "PeterNeumann",
  secret: "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz",
  verifier: "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
  note:
    "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n\n" +
    "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
}

export const foo = {
  verifier: "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
  note:
    "This is an example message.\n\n" +
    "— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n"
}

/** Derives a private key as text from a name and a seed. */
export const secretOf = (name: string, seed = name): Redacted.Redacted<string> =>
  Result.getOrThrow(formatSigningKey(pureCrypto, name, Redacted.make(pureCrypto.sha256(seed))))

export const signerOf = (name: string, seed = name): Signer =>
  Result.getOrThrow(parseSigner(pureCrypto, name, secretOf(name, seed)))

/** The log of the tests, and the key that signs it. */
export const logName = "vatproof.example/log/0"
export const signer = signerOf(logName)
export const log = { origin: logName, verifiers: [signer] }

/** Returns the keys of a log that `signer` signs and that the keys `former` signed before. */
export const keysOf = (signer: Signer, ...former: ReadonlyArray<Verifier>): LogKeys => ({
  name: signer.name,
  signers: [signer],
  verifiers: [signer, ...former]
})

export const verifierOf = (text: string) => Result.getOrThrow(parseVerifier(pureCrypto, text))

/** Returns the error of a failed result. */
export const refusalOf = <A, E>(result: Result.Result<A, E>): E => Result.getOrThrow(Result.flip(result))
