import { generateKeyPairSync } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Redacted, Result } from "effect"
import { formatSigningKey, formatVerifier, parseSigner, parseVerifier } from "#events/log/merkle/NoteKeys.ts"
import { open, sign } from "#events/log/merkle/SignedNote.ts"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"
import { foo, neumann, refusalOf, secretOf, signerOf, verifierOf } from "#test/support/log/Keys.ts"

const pemOf = (key: { export: (options: { type: "pkcs8"; format: "pem" }) => string | Buffer }) =>
  String(key.export({ type: "pkcs8", format: "pem" }))

describe("the parser of verifier keys", () => {
  it("parses a verifier key without loss: formatting the parsed key returns the same text", () => {
    for (const { verifier } of [foo, neumann]) assert.strictEqual(formatVerifier(verifierOf(verifier)), verifier)
    assert.strictEqual(verifierOf(foo.verifier).id, 0x530d903a)
    assert.strictEqual(verifierOf(foo.verifier).name, "example.com/foo")
  })

  it("rejects a verifier key that differs from the specified form", () => {
    const key = foo.verifier.slice("example.com/foo+530d903a+".length)
    const others = [
      "",
      "example.com/foo",
      `example.com/foo+${key}`,
      `+530d903a+${key}`,
      `example.com/foo+530D903A+${key}`,
      `example.com/foo+30d903a+${key}`,
      `example.com/fo o+530d903a+${key}`,
      `example.com/fo\u00a0o+530d903a+${key}`,
      `example.com/fo\u0001o+530d903a+${key}`,
      `example.com/foo+530d903a+${key}=`,
      `example.com/foo+530d903a+${key.slice(0, -4)}`,
      `example.com/foo+530d903a+BO${key.slice(2)}`,
      ` ${foo.verifier}`,
      `${foo.verifier}\n`
    ]
    for (const text of others) assert.isTrue(Result.isFailure(parseVerifier(pureCrypto, text)), text)
    assert.strictEqual(
      refusalOf(parseVerifier(pureCrypto, foo.verifier.replace("foo", "bar"))).message,
      "The id in the verifier key of example.com/bar does not match the key"
    )
  })
})

describe("the parser of signing keys", () => {
  it("parses a key of Go's note package, which produces the same verifier key and signature as in Go", () => {
    const signer = Result.getOrThrow(parseSigner(pureCrypto, neumann.name, Redacted.make(`${neumann.secret}\n`)))
    assert.strictEqual(formatVerifier(signer), neumann.verifier)
    const text = neumann.note.slice(0, neumann.note.indexOf("\n\n") + 1)
    assert.strictEqual(Result.getOrThrow(sign(text, [signer])), neumann.note)
  })

  it("parses a signing key without loss: formatting its seed returns the same text", () => {
    const signer = Result.getOrThrow(parseSigner(pureCrypto, neumann.name, Redacted.make(neumann.secret)))
    const seed = Buffer.from(neumann.secret.slice(neumann.secret.lastIndexOf("c74f20a3+") + 9), "base64").subarray(1)
    const written = Result.getOrThrow(formatSigningKey(pureCrypto, neumann.name, Redacted.make(seed)))
    assert.strictEqual(Redacted.value(written), neumann.secret)
    assert.strictEqual(signer.id, 0xc74f20a3)
  })

  it("parses a PKCS #8 PEM together with a name, because a PEM contains no name", () => {
    const { privateKey } = generateKeyPairSync("ed25519")
    const signer = Result.getOrThrow(parseSigner(pureCrypto, "example.com/log", Redacted.make(`\n${pemOf(privateKey)}\n`)))
    const note = Result.getOrThrow(sign("text\n", [signer]))
    assert.strictEqual(Result.getOrThrow(open(pureCrypto, note, [verifierOf(formatVerifier(signer))])), "text\n")
  })

  it("rejects a signing key with a wrong name, type or form, and does not quote the key in the error", () => {
    const secret = Redacted.value(secretOf("example.com/log"))
    const rsa = pemOf(generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey)
    const encrypted = generateKeyPairSync("ed25519").privateKey.export({
      type: "pkcs8",
      format: "pem",
      cipher: "aes-256-cbc",
      passphrase: "secret"
    })
    const publicPem = generateKeyPairSync("ed25519").publicKey.export({ type: "spki", format: "pem" })
    const others = [
      "",
      secret.slice(0, -4),
      secret.replace("PRIVATE+KEY+", ""),
      secret.replace("log", "lag"),
      secret.replace(/\+[\da-f]{8}\+/u, "+00000000+"),
      rsa,
      String(encrypted),
      String(publicPem),
      "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIA==\n-----END PRIVATE KEY-----"
    ]
    for (const text of others) {
      const { message } = refusalOf(parseSigner(pureCrypto, "example.com/log", Redacted.make(text)))
      assert.isFalse(text.length > 0 && message.includes(text.slice(-8)), message)
    }
    for (const name of ["", "two words", "a+b", "tab\t", "\ud800"]) {
      assert.isTrue(Result.isFailure(parseSigner(pureCrypto, name, Redacted.make(secret))))
      assert.isTrue(Result.isFailure(formatSigningKey(pureCrypto, name, Redacted.make(new Uint8Array(32)))))
    }
    assert.isTrue(Result.isFailure(formatSigningKey(pureCrypto, "name", Redacted.make(new Uint8Array(31)))))
  })

  it("returns a signer whose JSON does not contain the secret key", () => {
    const secret = secretOf("example.com/log")
    assert.notInclude(JSON.stringify({ secret, signer: signerOf("example.com/log") }), Redacted.value(secret).slice(-20))
  })
})
