/** Runs OpenSSL if it is installed. */
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

export const hasOpenssl = spawnSync("openssl", ["version"]).status === 0

/** DER header of an Ed25519 public key (RFC 8410). The 32 bytes of the key follow it. */
const keyPrefix = Buffer.from("302a300506032b6570032100", "hex")

/** Returns whether OpenSSL accepts the signature of this Ed25519 key over the message. */
export const opensslVerifies = (publicKey: Uint8Array, message: string, signature: Uint8Array) => {
  const folder = mkdtempSync(join(tmpdir(), "vatproof-openssl-"))
  const file = (name: string, content: string | Uint8Array) => {
    writeFileSync(join(folder, name), content)
    return join(folder, name)
  }
  const key = file("key.der", Buffer.concat([keyPrefix, publicKey]))
  const files = ["-inkey", key, "-keyform", "DER", "-in", file("message", message), "-sigfile", file("signature", signature)]
  const { status } = spawnSync("openssl", ["pkeyutl", "-verify", "-pubin", "-rawin", ...files])
  rmSync(folder, { recursive: true })
  return status === 0
}
