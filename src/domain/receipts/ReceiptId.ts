/** Receipt ids: `<prefix>-QC-<yyyymmdd, UTC>-<10 random characters of A-Z and 0-9>` (rule 2). */
import { DateTime } from "effect"

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
const randomLength = 10

/** The number of random bytes that `compose` takes. */
export const entropyBytes = 32

/**
 * Returns a new id from random bytes, or null if fewer than ten bytes are usable (about once in 10^20 calls). Bytes from 252 are
 * skipped: with them, four characters would be more frequent than the others.
 */
export const compose = (prefix: string, at: DateTime.Utc, entropy: Uint8Array): string | null => {
  const characters = Array.from(entropy).flatMap((byte) => (byte < 252 ? [alphabet.charAt(byte % 36)] : []))
  if (characters.length < randomLength) return null
  return `${prefix}-QC-${DateTime.formatIsoDateUtc(at).replaceAll("-", "")}-${characters.slice(0, randomLength).join("")}`
}

/** Returns true if the text has the form of a receipt id. Any prefix is accepted, because the operator can change it. */
export const isWellFormed = (text: string): boolean => /^[A-Z0-9]{1,10}-QC-\d{8}-[A-Z0-9]{10}$/u.test(text)

/** Returns the id in upper case, as it was issued. Clients may send it in any case. */
export const normalize = (text: string): string => text.replace(/[a-z]+/gu, (letters) => letters.toUpperCase())
