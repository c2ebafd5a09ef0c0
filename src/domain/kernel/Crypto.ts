/**
 * Hashes, signatures, randomness and ids. All are plain synchronous calls: the log hashes a few dozen bytes at a time, and each request
 * draws two ids, so an effect for each would cost more than the work.
 */
import { Context, type Option } from "effect"

/** The SHA-256 of bytes, or of a string's UTF-8 form (the string must be well formed): always 32 bytes. */
export type Sha256 = (data: Uint8Array | string) => Uint8Array

/** An Ed25519 key pair (RFC 8032). `publicKey` has 32 bytes, a signature 64; the private half stays inside `sign`. */
export interface KeyPair {
  readonly publicKey: Uint8Array
  readonly sign: (message: Uint8Array) => Uint8Array
}

/** Pure functions. */
export interface PureCrypto {
  readonly sha256: Sha256
  /** The same digest as 64 lower-case hex digits. */
  readonly sha256Hex: (data: Uint8Array | string) => string
  /** HMAC-SHA-256 of the UTF-8 form under a key, as 64 lower-case hex digits. */
  readonly hmacSha256Hex: (key: Uint8Array, text: string) => string
  /** False for a key or a signature of the wrong length, too. */
  readonly verifyEd25519: (publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array) => boolean
  /** The pair of a 32-byte seed (RFC 8032, 5.1.5); none for any other length. */
  readonly keyPairFromSeed: (seed: Uint8Array) => Option.Option<KeyPair>
  /** The pair of an unencrypted PKCS #8 PEM (RFC 8410); none if it is not an Ed25519 private key. */
  readonly keyPairFromPem: (pem: string) => Option.Option<KeyPair>
}

export class Crypto extends Context.Service<
  Crypto,
  PureCrypto & {
    /** From a cryptographically secure source. */
    readonly randomBytes: (count: number) => Uint8Array
    /** Ordered by time, within this process even inside a millisecond. */
    readonly uuidV7: () => string
  }
>()("vatproof/domain/kernel/Crypto") {}
