/** A witness (c2sp.org/tlog-cosignature, read 2026-11-23), which cosigns checkpoints. */
import { DateTime } from "effect"
import { messageOf } from "#events/log/merkle/Cosignature.ts"
import { keyType, type Signer } from "#events/log/merkle/NoteKeys.ts"
import { signatureLine } from "#events/log/merkle/SignedNote.ts"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"
import { signerOf } from "#test/support/log/Keys.ts"

const withType = (publicKey: Uint8Array) => Buffer.concat([Buffer.of(keyType.cosignature), publicKey])

/** Returns a key as a witness key. Its id differs from the id of the same key as a log key. */
export const asWitness = (key: Signer): Signer => {
  const digest = pureCrypto.sha256(Buffer.concat([Buffer.from(`${key.name}\n`), withType(key.publicKey)]))
  return { ...key, id: Buffer.from(digest).readUInt32BE() }
}

export const witnessOf = (name: string): Signer => asWitness(signerOf(name))

/** Formats the public key of a witness. */
export const formatWitness = ({ id, name, publicKey }: Signer): string =>
  `${name}+${id.toString(16).padStart(8, "0")}+${withType(publicKey).toString("base64")}`

/** Returns the note with a cosignature added. */
export const cosign = (note: string, witness: Signer, at: DateTime.Utc): string => {
  const seconds = Math.floor(DateTime.toEpochMillis(at) / 1000)
  const time = Buffer.alloc(8)
  time.writeBigUInt64BE(BigInt(seconds))
  const text = note.slice(0, note.lastIndexOf("\n\n") + 1)
  return `${note}${signatureLine(witness, Buffer.concat([time, witness.sign(messageOf(seconds, text))]))}`
}
