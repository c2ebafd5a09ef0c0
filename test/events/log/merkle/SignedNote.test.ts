import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { open, parse, sign } from "#events/log/merkle/SignedNote.ts"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"
import { foo, neumann, refusalOf, signerOf, verifierOf } from "#test/support/log/Keys.ts"
import { flipped, upTo } from "#test/support/log/Logs.ts"

const log = signerOf("example.com/log")
const witness = signerOf("witness.example.com")
const opened = (note: string, ...names: ReadonlyArray<string>) => open(pureCrypto, note, names.map(verifierOf))

describe("the format of signed notes", () => {
  it("accepts notes of other implementations", () => {
    for (const { note, verifier } of [foo, neumann]) {
      assert.strictEqual(Result.getOrThrow(opened(note, verifier)), note.slice(0, note.lastIndexOf("\n\n") + 1))
    }
  })

  it("accepts empty lines in the text of a note, which ends at the last empty line", () => {
    for (const text of ["one\n", "\n", "one\n\n\ntwo\n\n", "— not a signature\n\n", "é€😀\u007f\u0085\n"]) {
      const note = Result.getOrThrow(sign(text, [log]))
      assert.strictEqual(Result.getOrThrow(open(pureCrypto, note, [log])), text)
    }
  })

  it("accepts a note with signatures of several keys if the verifier knows one of the keys", () => {
    const note = Result.getOrThrow(sign("text\n", [log, witness]))
    assert.deepStrictEqual(
      Result.getOrThrow(parse(note)).signatures.map(({ name, id }) => ({ name, id })),
      [log, witness].map(({ name, id }) => ({ name, id }))
    )
    assert.isTrue(Result.isSuccess(open(pureCrypto, note, [log])))
    assert.isTrue(Result.isSuccess(open(pureCrypto, note, [witness])))
    assert.isTrue(Result.isSuccess(open(pureCrypto, note, [witness, log])))
  })

  it("rejects a note as unsigned if the verifier does not know the key, even if it knows another key of the same name", () => {
    const note = Result.getOrThrow(sign("text\n", [log]))
    assert.strictEqual(refusalOf(open(pureCrypto, note, [])).reason, "unsigned")
    assert.strictEqual(refusalOf(open(pureCrypto, note, [signerOf(log.name, "another seed")])).reason, "unsigned")
    assert.strictEqual(refusalOf(open(pureCrypto, note, [{ ...log, name: "example.com/other" }])).reason, "unsigned")
  })

  it("rejects a note if the signature of any known key is wrong", () => {
    const note = Result.getOrThrow(sign("text\n", [log, witness]))
    const other = Result.getOrThrow(sign("other\n", [witness]))
    const line = other.slice(other.indexOf("—"))
    const spliced = note.replace(/— witness.*\n/u, line)
    assert.strictEqual(refusalOf(open(pureCrypto, spliced, [log, witness])).reason, "forged")
    assert.isTrue(Result.isSuccess(open(pureCrypto, spliced, [log])))
    assert.strictEqual(refusalOf(open(pureCrypto, note + line, [witness])).reason, "forged")
    // Two known keys with the same name and id: the signature must verify with each of them.
    assert.strictEqual(refusalOf(open(pureCrypto, note, [log, { ...log, publicKey: witness.publicKey }])).reason, "forged")
    assert.strictEqual(refusalOf(open(pureCrypto, note, [{ ...log, publicKey: new Uint8Array(31) }])).reason, "forged")
  })

  it("accepts up to 64 signatures on a note, including signatures of unknown keys with any type and length", () => {
    const note = Result.getOrThrow(sign("text\n", [log]))
    const unknown = `— post.quantum ${Buffer.alloc(4 + 2420, 6).toString("base64")}\n`
    assert.isTrue(Result.isSuccess(open(pureCrypto, note + unknown.repeat(63), [log])))
    assert.strictEqual(refusalOf(open(pureCrypto, note + unknown.repeat(64), [log])).reason, "malformed")
  })

  it("rejects text that differs from the form of a signed note", () => {
    const note = Result.getOrThrow(sign("text\n", [log]))
    const [, , line = ""] = note.split("\n")
    const signature = line.slice(line.lastIndexOf(" ") + 1)
    const others = [
      "",
      "text\n",
      "text\n\n",
      "text\n\n\n",
      `text\n${line}\n`,
      `text\n\n${line}`,
      `text\n\n${line}\n\n`,
      `text\n\n${line}\nmore\n`,
      `text\n\n-${line.slice(1)}\n`,
      `text\n\n${line.replace("— ", "—\u00a0")}\n`,
      `text\n\n ${line}\n`,
      `text\n\n${line} \n`,
      `text\n\n— ${signature}\n`,
      `text\n\n—  ${signature}\n`,
      `text\n\n— na+me ${signature}\n`,
      `text\n\n— na\u2003me ${signature}\n`,
      `text\n\n— name  ${signature}\n`,
      `text\n\n— name ${signature.slice(0, -1)}\n`,
      `text\n\n— name ${signature.replaceAll("=", "")}\n`,
      `text\n\n— name ${signature} \n`,
      "text\n\n— name AAAAAA==\n",
      `text\r\n\n${line}\n`,
      `text\n\n${line}\r\n`,
      `te\u0000xt\n\n${line}\n`,
      `te\txt\n\n${line}\n`,
      `te\ud800xt\n\n${line}\n`
    ]
    for (const text of others) assert.strictEqual(refusalOf(parse(text)).reason, "malformed", JSON.stringify(text))
    assert.isTrue(Result.isSuccess(parse(note)))
  })

  it("rejects a note if the unused bits in the base64 of a signature are not zero", () => {
    const note = Result.getOrThrow(sign("text\n", [log]))
    // 68 bytes leave two unused bits in the last base64 digit.
    const last = note.at(-3) ?? ""
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    const sibling = alphabet[alphabet.indexOf(last) + 1] ?? ""
    assert.strictEqual(refusalOf(open(pureCrypto, `${note.slice(0, -3)}${sibling}=\n`, [log])).reason, "malformed")
  })

  it("creates no note with malformed text or without a signer", () => {
    for (const text of ["", "no newline", "con\u0007trol\n", "\r\n", "\udc00\n"]) {
      assert.strictEqual(refusalOf(sign(text, [log])).reason, "malformed")
    }
    assert.strictEqual(refusalOf(sign("text\n", [])).reason, "unsigned")
  })

  it("rejects a note if any bit is changed", () => {
    const bytes = Buffer.from(Result.getOrThrow(sign("example\nof a note\n", [log])))
    const survivors = upTo(bytes.length * 8).filter((bit) =>
      Result.isSuccess(open(pureCrypto, new TextDecoder().decode(flipped(bytes, bit)), [log]))
    )
    assert.deepStrictEqual(survivors, [])
  })
})
