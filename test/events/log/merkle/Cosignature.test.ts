import { assert, describe, it } from "@effect/vitest"
import { DateTime, Result } from "effect"
import * as Checkpoint from "#events/log/merkle/Checkpoint.ts"
import { cosignaturesIn, parseWitnesses } from "#events/log/merkle/Cosignature.ts"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"
import { refusalOf, signerOf } from "#test/support/log/Keys.ts"
import { asWitness, cosign, formatWitness, witnessOf } from "#test/support/log/Witness.ts"

const log = signerOf("vatproof.example/log/0")
const witness = witnessOf("witness.example.com/w1")
const at = DateTime.makeUnsafe("2026-11-23T09:30:00Z")

const checkpoint = { origin: log.name, size: 3, root: pureCrypto.sha256("root"), extensions: [] }
const note = Result.getOrThrow(Checkpoint.sign(checkpoint, [log]))
const cosigned = cosign(note, witness, at)
const read = (text: string) => cosignaturesIn(pureCrypto, text, [witness])

describe("the cosignature format", () => {
  it("adds the time at which a witness saw a checkpoint, and does not affect verifiers without the witness's key", () => {
    assert.deepStrictEqual(Result.getOrThrow(read(cosigned)), [{ witness: witness.name, at }])
    const opened = Checkpoint.open(pureCrypto, cosigned, { origin: log.name, verifiers: [log] })
    assert.deepStrictEqual(Result.getOrThrow(opened), checkpoint)
    assert.deepStrictEqual(Result.getOrThrow(cosignaturesIn(pureCrypto, cosigned, [asWitness(log)])), [])
    assert.deepStrictEqual(Result.getOrThrow(read(note)), [])
  })

  it("rejects a cosignature of another text, with another time, or by another key of the same name", () => {
    const other = Result.getOrThrow(Checkpoint.sign({ ...checkpoint, size: 4 }, [log]))
    const line = cosigned.slice(note.length)
    const bytes = Buffer.from(line.trim().split(" ")[2] ?? "", "base64")
    bytes[11] = (bytes[11] ?? 0) ^ 1
    const later = `${note}— ${witness.name} ${bytes.toString("base64")}\n`
    const forger = { ...witness, sign: log.sign }
    for (const forged of [`${other}${line}`, later, cosign(note, forger, at)]) {
      assert.match(refusalOf(read(forged)).message, /cosignature of witness\.example\.com\/w1 is invalid/u)
    }
  })

  it("parses the public key of a witness, which has its own key type", () => {
    const text = formatWitness(witness)
    assert.match(text, /^witness\.example\.com\/w1\+[\da-f]{8}\+B/u)
    const [parsed] = Result.getOrThrow(parseWitnesses(pureCrypto, [`${text}\n`]))
    assert.deepStrictEqual([parsed.id, parsed.publicKey], [witness.id, witness.publicKey])
  })
})
