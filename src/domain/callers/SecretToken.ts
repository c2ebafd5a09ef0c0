/**
 * The format of secrets: a prefix for their purpose, 32 random base62 characters (190 bits), and a checksum of 6 characters. With
 * the checksum the service rejects a mistyped secret without a database query. The checksum is not a security measure.
 */
import { Effect } from "effect"
import type { Crypto } from "#domain/kernel/Crypto.ts"

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const randomLength = 32
const checksumLength = 6
const restForm = /^[0-9A-Za-z]{38}$/u

/**
 * Number of random bytes for a secret. It is larger than the number of random characters, because bytes that would make some
 * characters more likely are skipped.
 */
const entropyBytes = 64

/** Generates a new secret with the prefix `start`. */
export const generate = (crypto: Crypto["Service"], start: string): Effect.Effect<string> =>
  Effect.sync(() => fromEntropy(start, crypto.randomBytes(entropyBytes))).pipe(
    Effect.repeat({ until: (secret) => secret !== null, times: 10 }),
    Effect.flatMap((secret) =>
      secret === null
        ? Effect.die("No secret could be generated: too few of the random bytes were usable")
        : Effect.succeed(secret)
    )
  )

/**
 * Returns a secret made from random bytes. Bytes of 248 or more are skipped. Returns null if fewer than 32 bytes remain (about
 * once in 10^13 calls).
 */
export const fromEntropy = (start: string, entropy: Uint8Array): string | null => {
  // 248 is the largest multiple of 62 in a byte. Bytes of 248 or more would make some characters more likely.
  const characters = Array.from(entropy).flatMap((byte) => (byte < 248 ? [alphabet.charAt(byte % 62)] : []))
  if (characters.length < randomLength) return null
  const body = start + characters.slice(0, randomLength).join("")
  return body + checksum(body)
}

/** Returns true if the text has the prefix `start`, the form of a secret, and the right checksum. */
export const isWellFormed = (start: string, text: string): boolean =>
  text.startsWith(start) && restForm.test(text.slice(start.length)) && text.endsWith(checksum(text.slice(0, -checksumLength)))

const checksum = (text: string): string => {
  let rest = crc32(text)
  let digits = ""
  for (let i = 0; i < checksumLength; i += 1) {
    digits = alphabet.charAt(rest % 62) + digits
    rest = Math.floor(rest / 62)
  }
  return digits
}

const crcTable = Uint32Array.from({ length: 256 }, (_, index) => {
  let crc = index
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  return crc
})

/** CRC-32 (ISO 3309) of ASCII text. */
const crc32 = (text: string): number => {
  let crc = 0xffffffff
  for (let i = 0; i < text.length; i += 1) crc = (crc >>> 8) ^ (crcTable[(crc ^ text.charCodeAt(i)) & 0xff] ?? 0)
  return (crc ^ 0xffffffff) >>> 0
}
