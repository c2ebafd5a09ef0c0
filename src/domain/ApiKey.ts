/**
 * API keys: `svc_live_`, 32 random base62 characters and 6 characters of checksum (DECISIONS 2). The checksum lets a mistyped or made-up
 * key be refused without asking the database; it protects nothing.
 */
import { Schema } from "effect"
import * as DomainEvent from "#domain/DomainEvent.ts"

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const keyStart = "svc_live_"
const randomLength = 32
const checksumLength = 6
const shape = /^svc_live_[0-9A-Za-z]{38}$/u

/** How many random bytes `compose` wants: more than characters, because bytes that would bias the choice are skipped. */
export const entropyBytes = 64

/** A key from random bytes, or none if too many of them had to be skipped (about once in 10^13 calls). */
export const compose = (entropy: Uint8Array): string | null => {
  // 248 is the largest multiple of 62 in a byte: what lies above would make some characters likelier than others.
  const characters = Array.from(entropy).flatMap((byte) => (byte < 248 ? [alphabet.charAt(byte % 62)] : []))
  if (characters.length < randomLength) return null
  const body = keyStart + characters.slice(0, randomLength).join("")
  return body + checksum(body)
}

/** Whether the text has the form of a key and its checksum is right. */
export const isWellFormed = (key: string): boolean => shape.test(key) && key.endsWith(checksum(key.slice(0, -checksumLength)))

/** The first 12 characters identify a key within its account. */
export const prefixOf = (key: string): string => key.slice(0, 12)

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

/** A key was issued. `key_sha256` (hex) recognises it; the key itself is kept nowhere. */
export const ApiKeyIssued = DomainEvent.define(
  "ApiKeyIssued",
  1,
  Schema.Struct({ account_id: Schema.String, key_id: Schema.String, prefix: Schema.String, key_sha256: Schema.String })
)

/** A key was revoked for good. */
export const ApiKeyRevoked = DomainEvent.define(
  "ApiKeyRevoked",
  1,
  Schema.Struct({ account_id: Schema.String, key_id: Schema.String, prefix: Schema.String })
)
