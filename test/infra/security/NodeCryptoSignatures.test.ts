import { assert, describe, it } from "@effect/vitest"
import { Option } from "effect"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"
import { hex } from "#test/support/log/Logs.ts"

const bytes = (text: string) => Uint8Array.from(Buffer.from(text, "hex"))

/** RFC 8032, section 7.1, tests 1 and 2. */
const vectors = [
  {
    seed: "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
    publicKey: "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
    message: "",
    signature:
      "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
  },
  {
    seed: "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
    publicKey: "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
    message: "72",
    signature:
      "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
  }
]

describe("the log's cryptography", () => {
  it("computes the same SHA-256 for a text and for its UTF-8 bytes", () => {
    const digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert.strictEqual(hex(pureCrypto.sha256("abc")), digest)
    assert.strictEqual(hex(pureCrypto.sha256(bytes("616263"))), digest)
    assert.strictEqual(pureCrypto.sha256Hex("abc"), digest)
    assert.strictEqual(pureCrypto.sha256Hex("€"), pureCrypto.sha256Hex(bytes("e282ac")))
  })

  it("signs and verifies the examples of RFC 8032", () => {
    for (const { seed, publicKey, message, signature } of vectors) {
      const pair = Option.getOrThrow(pureCrypto.keyPairFromSeed(bytes(seed)))
      assert.strictEqual(hex(pair.publicKey), publicKey)
      assert.strictEqual(hex(pair.sign(bytes(message))), signature)
      assert.isTrue(pureCrypto.verifyEd25519(pair.publicKey, bytes(message), bytes(signature)))
      assert.isFalse(pureCrypto.verifyEd25519(pair.publicKey, bytes(`${message}00`), bytes(signature)))
    }
  })

  it("rejects keys and signatures of a wrong length, and keys that are no point of the curve", () => {
    const signature = new Uint8Array(64)
    assert.isTrue(Option.isNone(pureCrypto.keyPairFromSeed(new Uint8Array(31))))
    assert.isFalse(pureCrypto.verifyEd25519(new Uint8Array(33), new Uint8Array(), signature))
    assert.isFalse(pureCrypto.verifyEd25519(new Uint8Array(32), new Uint8Array(), signature.subarray(1)))
    // A y coordinate outside of the field, and a y coordinate without a point on the curve.
    for (const key of [new Uint8Array(32).fill(255), Uint8Array.of(2, ...new Uint8Array(31))]) {
      assert.isFalse(pureCrypto.verifyEd25519(key, new Uint8Array(), signature))
    }
  })
})
