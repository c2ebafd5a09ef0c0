/**
 * Hashes, signatures, randomness and ids. All are plain synchronous functions: the log hashes a few dozen bytes at a time, and
 * each request generates two ids, so an Effect for each call would cost more than the call itself.
 */
import { Context, type Option } from "effect"

/** Returns the SHA-256 (32 bytes) of bytes, or of a string's UTF-8 form. The string must have no lone surrogates. */
export type Sha256 = (data: Uint8Array | string) => Uint8Array

/** An Ed25519 key pair (RFC 8032). `publicKey` has 32 bytes, a signature has 64. Only `sign` has access to the private key. */
export interface KeyPair {
  readonly publicKey: Uint8Array
  readonly sign: (message: Uint8Array) => Uint8Array
}

/** The functions without randomness. */
export interface PureCrypto {
  readonly sha256: Sha256
  /** Returns the SHA-256 as 64 lower-case hex digits. */
  readonly sha256Hex: (data: Uint8Array | string) => string
  /** Returns the HMAC-SHA-256 of a text's UTF-8 form under a key, as 64 lower-case hex digits. */
  readonly hmacSha256Hex: (key: Uint8Array, text: string) => string
  /** Returns true if the signature is valid. Returns false for a key or signature of the wrong length. */
  readonly verifyEd25519: (publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array) => boolean
  /** Returns the key pair of a 32-byte seed (RFC 8032, 5.1.5); none for any other length. */
  readonly keyPairFromSeed: (seed: Uint8Array) => Option.Option<KeyPair>
  /** Returns the key pair of an unencrypted PKCS #8 PEM (RFC 8410); none if it is not an Ed25519 private key. */
  readonly keyPairFromPem: (pem: string) => Option.Option<KeyPair>
}

export class Crypto extends Context.Service<
  Crypto,
  PureCrypto & {
    /** Returns random bytes from a cryptographically secure source. */
    readonly randomBytes: (count: number) => Uint8Array
    /**
     * Returns a UUID version 7. Ids sort in the order of their creation. Ids from one process do so even within a millisecond.
     */
    readonly uuidV7: () => string
  }
>()("vatproof/domain/kernel/Crypto") {}
