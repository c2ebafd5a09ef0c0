/**
 * Secrets that callers present: a start that tells what they are for, 32 random base62 characters (190 bits), and 6 characters of
 * checksum. The checksum lets a mistyped or made-up secret be refused without asking the database; it protects nothing.
 */
import { Effect } from "effect"
import type { Crypto } from "#domain/kernel/Crypto.ts"

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const randomLength = 32
const checksumLength = 6
const restForm = /^[0-9A-Za-z]{38}$/u

/** How many random bytes `compose` wants: more than characters, because bytes that would bias the choice are skipped. */
const entropyBytes = 64

/** A new secret that begins with `start`. */
export const draw = (crypto: Crypto["Service"], start: string): Effect.Effect<string> =>
  Effect.sync(() => compose(start, crypto.randomBytes(entropyBytes))).pipe(
    Effect.repeat({ until: (secret) => secret !== null, times: 10 }),
    Effect.flatMap((secret) => (secret === null ? Effect.die("No secret could be drawn") : Effect.succeed(secret)))
  )

/** A secret from random bytes, or none if too many of them had to be skipped (about once in 10^13 calls). */
export const compose = (start: string, entropy: Uint8Array): string | null => {
  // 248 is the largest multiple of 62 in a byte: what lies above would make some characters likelier than others.
  const characters = Array.from(entropy).flatMap((byte) => (byte < 248 ? [alphabet.charAt(byte % 62)] : []))
  if (characters.length < randomLength) return null
  const body = start + characters.slice(0, randomLength).join("")
  return body + checksum(body)
}

/** Whether the text begins with `start`, has the form of a secret, and its checksum is right. */
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
