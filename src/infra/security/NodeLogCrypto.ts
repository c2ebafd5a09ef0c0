/** SHA-256 and Ed25519 from Node's OpenSSL, in the shape that the event log asks for (events/log/LogCrypto). */
import { createPrivateKey, createPublicKey, hash, sign, verify, type KeyObject } from "node:crypto"
import { Option } from "effect"

const publicKeyLength = 32
const seedLength = 32

/** DER up to the key itself, which has a fixed place for Ed25519 (RFC 8410, sections 4 and 7; read 2026-11-21). */
const spkiPrefix = Buffer.from("302a300506032b6570032100", "hex")
const pkcs8Prefix = Buffer.from("302e020100300506032b657004220420", "hex")

/**
 * Through a string and into a small array, because V8 keeps typed arrays of up to 64 bytes on its own heap: half the
 * time of asking for a Buffer (0.55 instead of 1.05 µs) and no foreign memory for each hash.
 */
const sha256 = (data: Uint8Array | string): Uint8Array => {
  const text = hash("sha256", data, "binary")
  const digest = new Uint8Array(32)
  for (let i = 0; i < 32; i += 1) digest[i] = text.charCodeAt(i)
  return digest
}

const sha256Hex = (data: Uint8Array | string): string => hash("sha256", data, "hex")

const verifyEd25519 = (publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean =>
  publicKey.length === publicKeyLength &&
  signature.length === 64 &&
  verify(null, message, createPublicKey({ key: Buffer.concat([spkiPrefix, publicKey]), format: "der", type: "spki" }), signature)

const keyPair = (privateKey: KeyObject) => {
  const spki = createPublicKey(privateKey).export({ format: "der", type: "spki" })
  return {
    publicKey: new Uint8Array(spki.subarray(spkiPrefix.length)),
    sign: (message: Uint8Array): Uint8Array => new Uint8Array(sign(null, message, privateKey))
  }
}

const keyPairFromSeed = (seed: Uint8Array) =>
  seed.length === seedLength
    ? Option.some(keyPair(createPrivateKey({ key: Buffer.concat([pkcs8Prefix, seed]), format: "der", type: "pkcs8" })))
    : Option.none()

const readPem = Option.liftThrowable((pem: string) => createPrivateKey({ key: pem, format: "pem" }))

const keyPairFromPem = (pem: string) =>
  readPem(pem).pipe(
    Option.filter((key) => key.asymmetricKeyType === "ed25519"),
    Option.map(keyPair)
  )

/** Satisfies the service `LogCrypto` of the event log; the app provides it there. */
export const logCrypto = { sha256, sha256Hex, verifyEd25519, keyPairFromSeed, keyPairFromPem }
