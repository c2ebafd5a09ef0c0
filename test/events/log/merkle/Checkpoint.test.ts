import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { CheckpointRefused, format, open, parse, sign, type Checkpoint } from "#events/log/merkle/Checkpoint.ts"
import { NoteRefused } from "#events/log/merkle/SignedNote.ts"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"
import { refusalOf, signerOf } from "#test/support/log/Keys.ts"
import { flipped, sha256, upTo } from "#test/support/log/Logs.ts"

const origin = "vatproof.example/log0"
const signer = signerOf(origin)
const checkpoint: Checkpoint = { origin, size: 20_852_163, root: sha256("root"), extensions: [] }
const log = { origin, verifiers: [signer] }
const rootText = Buffer.from(checkpoint.root).toString("base64")

describe("the checkpoint format", () => {
  it("writes a checkpoint as the three lines that tlog-checkpoint specifies, and a signature", () => {
    assert.strictEqual(format(checkpoint), `${origin}\n20852163\n${rootText}\n`)
    const note = Result.getOrThrow(sign(checkpoint, [signer]))
    assert.deepStrictEqual(Result.getOrThrow(open(pureCrypto, note, log)), checkpoint)
  })

  const size = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }))
  it.prop(
    "parses a formatted checkpoint to the same content, for any size of the tree",
    [size, Schema.Boolean],
    ([size, extended]) => {
      const written = { ...checkpoint, size, root: sha256(String(size)), extensions: extended ? ["one", "two and more"] : [] }
      assert.deepStrictEqual(Result.getOrThrow(parse(format(written))), written)
    }
  )

  it("rejects text that differs from the form in tlog-checkpoint", () => {
    const others = [
      "",
      "\n",
      `${origin}\n1\n${rootText}`,
      `${origin}\n${rootText}\n`,
      `${origin}\n1\n`,
      `\n1\n${rootText}\n`,
      `${origin}\n\n${rootText}\n`,
      `${origin}\n1\n${rootText}\n\n`,
      `${origin}\n1\n${rootText}\n\nextension\n`,
      `${origin}\n01\n${rootText}\n`,
      `${origin}\n00\n${rootText}\n`,
      `${origin}\n-1\n${rootText}\n`,
      `${origin}\n+1\n${rootText}\n`,
      `${origin}\n1.0\n${rootText}\n`,
      `${origin}\n1e3\n${rootText}\n`,
      `${origin}\n0x1\n${rootText}\n`,
      `${origin}\n 1\n${rootText}\n`,
      `${origin}\n１\n${rootText}\n`,
      `${origin}\n9007199254740992\n${rootText}\n`,
      `${origin}\n18446744073709551617\n${rootText}\n`,
      `${origin}\n1\n${rootText} \n`,
      `${origin}\n1\n${rootText.slice(0, -4)}\n`,
      `${origin}\n1\n${rootText.replace("=", "")}\n`,
      `${origin}\n1\n${rootText.replaceAll("/", "_")}-\n`,
      `${origin}\n1\n${Buffer.from(checkpoint.root).toString("hex")}\n`
    ]
    for (const text of others) assert.strictEqual(refusalOf(parse(text)).reason, "malformed", JSON.stringify(text))
  })

  it("rejects a checkpoint of another log, even if a known key signed it", () => {
    const note = Result.getOrThrow(sign({ ...checkpoint, origin: "vatproof.example/log1" }, [signer]))
    const refusal = refusalOf(open(pureCrypto, note, log))
    assert.instanceOf(refusal, CheckpointRefused)
    assert.strictEqual(refusal.reason, "other_origin")
  })

  it("rejects a checkpoint before parsing its text if no known key signed it", () => {
    const note = Result.getOrThrow(sign(checkpoint, [signerOf("witness.example.com")]))
    assert.instanceOf(refusalOf(open(pureCrypto, note, log)), NoteRefused)
  })

  it("signs no checkpoint that a verifier would reject or would parse to different content", () => {
    const unsound: ReadonlyArray<Partial<Checkpoint>> = [
      { origin: "" },
      { origin: `a\n1\n${rootText}` },
      { size: -1 },
      { size: 2 ** 53 },
      { size: 0.5 },
      { root: new Uint8Array(31) },
      { extensions: [""] },
      { origin: "control\u0007" }
    ]
    for (const change of unsound) assert.isTrue(Result.isFailure(sign({ ...checkpoint, ...change }, [signer])))
  })

  it("rejects a checkpoint if any bit is changed", () => {
    const bytes = Buffer.from(Result.getOrThrow(sign(checkpoint, [signer])))
    const survivors = upTo(bytes.length * 8).filter((bit) =>
      Result.isSuccess(open(pureCrypto, new TextDecoder().decode(flipped(bytes, bit)), log))
    )
    assert.deepStrictEqual(survivors, [])
  })
})
