import { generateKeyPairSync } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Array as Arr, Redacted, Result } from "effect"
import { formatVerifier } from "#events/log/merkle/NoteKeys.ts"
import { keysOf } from "#events/log/notary/LogSigner.ts"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"
import { refusalOf, secretOf, signerOf } from "#test/support/log/Keys.ts"

const log = "vat.example.com/log/0"
const one = signerOf(log, "one")
const two = signerOf(log, "two")
const secret = (seed: string, name = log) => Redacted.value(secretOf(name, seed))
type Texts = Arr.NonEmptyReadonlyArray<string>
const read = (...texts: Texts) =>
  keysOf(
    pureCrypto,
    Arr.map(texts, (text) => Redacted.make(text)),
    log
  )

/** Returns the ids of the signing keys and of all trusted keys. */
const idsOf = (...texts: Texts) => {
  const { signers, verifiers } = Result.getOrThrow(read(...texts))
  return { signers: signers.map(({ id }) => id), verifiers: verifiers.map(({ id }) => id) }
}

const pem = String(generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }))

describe("the parser of the keys of a log", () => {
  it("accepts one signing key, in each of the supported formats", () => {
    assert.deepStrictEqual(idsOf(` ${secret("one")}\n`), { signers: [one.id], verifiers: [one.id] })
    for (const text of [pem, "YmVuY2htYXJrcyBzaWduIHdpdGggdGhpcyBvbmUga2U"]) {
      const { name, signers, verifiers } = Result.getOrThrow(read(text))
      assert.deepStrictEqual([name, signers.length, verifiers.length], [log, 1, 1])
    }
  })

  it("accepts several signing keys, and the public keys of former signing keys", () => {
    assert.deepStrictEqual(idsOf(secret("two"), secret("one")), { signers: [two.id, one.id], verifiers: [two.id, one.id] })
    assert.deepStrictEqual(idsOf(secret("two"), formatVerifier(one)), {
      signers: [two.id],
      verifiers: [two.id, one.id]
    })
    assert.deepStrictEqual(idsOf(formatVerifier(one), secret("two")).verifiers, [two.id, one.id])
    assert.deepStrictEqual(Result.getOrThrow(read(pem, formatVerifier(one))).verifiers.at(-1)?.id, one.id)
  })

  it("uses a key once if the key is listed twice", () => {
    assert.deepStrictEqual(idsOf(secret("one"), secret("one"), formatVerifier(one)), { signers: [one.id], verifiers: [one.id] })
  })

  it("rejects keys with the names of different logs", () => {
    const foreign = secret("one", "other.example/log/0")
    assert.match(refusalOf(read(secret("two"), foreign)).message, /belong to different logs: vat\.example\.com/u)
    assert.match(refusalOf(read(secret("two"), formatVerifier(signerOf("other.example/log/0")))).message, /different logs/u)
  })

  it("rejects keys without a signing key, and does not quote a key in the error", () => {
    assert.match(refusalOf(read(formatVerifier(one))).message, /^All keys are public keys; add a signing key$/u)
    const wrong: ReadonlyArray<Texts> = [[""], ["nonsense"], [secret("one"), "nonsense"], [secret("one").slice(0, -4)]]
    for (const texts of wrong) {
      const { message } = refusalOf(read(...texts))
      assert.match(message, /A signing key is/u)
      assert.notInclude(message, "nonsense")
    }
  })

  it("rejects a malformed key, and names it by its number in the list of keys", () => {
    assert.match(refusalOf(read(secret("one"), "nonsense", formatVerifier(two))).message, /^Key 2 of 3: A signing key is/u)
    const mistyped = formatVerifier(two).replace("vat.", "tax.")
    assert.match(refusalOf(read(secret("one"), mistyped)).message, /^Key 2 of 2: The id in the verifier key of tax\.example/u)
    assert.match(refusalOf(read("nonsense")).message, /^A signing key is/u)
  })
})
