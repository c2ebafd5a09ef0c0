/**
 * API keys: `svc_live_`, 32 random base62 characters and a checksum of 6 characters (rule 3). With the checksum the service
 * rejects a mistyped key without a database query. The checksum is not a security measure.
 */
import type { Effect } from "effect"
import type { Crypto } from "#domain/kernel/Crypto.ts"
import * as SecretToken from "#domain/callers/SecretToken.ts"

const keyStart = "svc_live_"

/** Generates a new key. */
export const generate = (crypto: Crypto["Service"]): Effect.Effect<string> => SecretToken.generate(crypto, keyStart)

/**
 * Returns a key made from 64 random bytes. Bytes of 248 or more are skipped, because they would make some characters more likely.
 * Returns null if fewer than 32 bytes remain (about once in 10^13 calls).
 */
export const fromEntropy = (entropy: Uint8Array): string | null => SecretToken.fromEntropy(keyStart, entropy)

/** Returns true if the text has the form and checksum of a key. */
export const isWellFormed = (key: string): boolean => SecretToken.isWellFormed(keyStart, key)

/** Returns the first 12 characters of a key, which identify it within its account. */
export const prefixOf = (key: string): string => key.slice(0, 12)
