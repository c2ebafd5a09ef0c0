/**
 * API keys: `svc_live_`, 32 random base62 characters and a checksum of 6 characters (rule 3). The checksum rejects mistyped keys
 * without a query; it is not a security measure.
 */
import type { Effect } from "effect"
import type { Crypto } from "#domain/kernel/Crypto.ts"
import * as TokenChecksum from "#domain/kernel/TokenChecksum.ts"

const keyStart = "svc_live_"

/** Generates a new key. */
export const generate = (crypto: Crypto["Service"]): Effect.Effect<string> => TokenChecksum.generate(crypto, keyStart)

/** Returns a key from 64 random bytes; null in the rare case that they do not suffice. */
export const fromEntropy = (entropy: Uint8Array): string | null => TokenChecksum.fromEntropy(keyStart, entropy)

/** Returns true if the text has the form and checksum of a key. */
export const isWellFormed = (key: string): boolean => TokenChecksum.isWellFormed(keyStart, key)

/** The first 12 characters identify a key within its account. */
export const prefixOf = (key: string): string => key.slice(0, 12)
