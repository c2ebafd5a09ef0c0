import type { PureCrypto } from "#domain/kernel/Crypto.ts"

/** Returns a UUIDv8 (RFC 9562, 5.8) made from the SHA-256 of the parts. It is the same on every replica. */
export const computedId = ({ sha256Hex }: Pick<PureCrypto, "sha256Hex">, ...parts: ReadonlyArray<string>): string => {
  const hex = sha256Hex(parts.join("\0"))
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 0x3) | 0x8).toString(16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
