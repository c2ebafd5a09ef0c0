/** SHA-256 and HMAC from Node's OpenSSL. */
import { createHmac, hash } from "node:crypto"
import { Layer } from "effect"
import { Hashing } from "#domain/kernel/Hashing.ts"

export const layer = Layer.succeed(Hashing, {
  sha256: (content) => hash("sha256", content, "hex"),
  keyed: (key, text) => createHmac("sha256", key).update(text).digest("hex")
})
