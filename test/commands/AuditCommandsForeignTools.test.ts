/**
 * Tests the Python verifier in docs/audit, which shares no code with the service. Without Python or OpenSSL the tests are skipped with a
 * message.
 */
import { spawnSync } from "node:child_process"
import { cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { basename, join } from "node:path"
import { beforeEach } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { formatVerifier } from "#events/merkle/NoteKeys.ts"
import { command } from "#test/support/CommandLine.ts"
import { edit, Exported, file, first, key, lines, testLayer } from "#test/support/ExportedLog.ts"
import { assert, layer } from "#test/support/Test.ts"
import { signerOf } from "#test/support/log/Keys.ts"

const verifier = join(import.meta.dirname, "../../docs/audit/verify.py")
const isMissing = ["python3 --version", "openssl version"].some((line) => {
  const [program = "", argument = ""] = line.split(" ")
  return spawnSync(program, [argument]).status !== 0
})

const verify = (directory: string, { by = key, receipts = [] }: { by?: string; receipts?: ReadonlyArray<string> } = {}) => {
  const { status, stderr, stdout } = spawnSync("python3", [verifier, directory, by, ...receipts], { encoding: "utf8" })
  return { status, said: stdout + stderr }
}

const receiptsIn = (directory: string) => readdirSync(join(directory, "receipts")).map((name) => basename(name, ".json"))

/** Returns the folder of the export, or of a copy that `alter` changed. */
const copy = Effect.map(Exported, ({ directory, folder }) => {
  const copied = mkdtempSync(join(folder, "copy-"))
  cpSync(directory, copied, { recursive: true })
  return copied
})

const decodeEvent = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ recorded_at: Schema.String })))

layer(testLayer, { excludeTestServices: true })("the Python verifier of docs/audit", (it) => {
  beforeEach((context) => context.skip(isMissing, "skipped: python3 or openssl is not installed"))

  it.effect("verifies an export and its receipts, with and without the personal documents", function* () {
    const directory = yield* copy
    const receipts = receiptsIn(directory)
    assert.deepStrictEqual(verify(directory, { receipts }), {
      status: 0,
      said: "Right: 13 leaves, root, signature, 6 personal documents and the proofs of 5 receipts\n"
    })
    edit("personal/documents.txt", (text) => text.replace(/ .*/u, " erased"))(directory)
    assert.strictEqual(verify(directory, { receipts }).status, 0)
    rmSync(join(directory, "personal"), { recursive: true })
    assert.deepStrictEqual(verify(directory, { receipts }), {
      status: 0,
      said: "Right: 13 leaves, root, signature, 0 personal documents and the proofs of 5 receipts\n"
    })
  })

  it.effect("verifies an export of a part of the log", function* () {
    const { directory, folder } = yield* Exported
    const at = (position: number) => {
      const line = file(directory, "events.ndjson").text.split("\n")[position] ?? ""
      return decodeEvent(line).recorded_at.replace(/\d{3}Z$/u, "Z")
    }
    const part = join(folder, "part")
    yield* command("audit", "export", "--from", at(5), "--to", at(10), "--out", part)
    assert.match(verify(part, { receipts: receiptsIn(part) }).said, /^Right: [4-7] leaves/u)
    edit("manifest.json", (text) => text.replace(/("before": \[\s*")(.)/u, (_, start, one) => start + (one === "A" ? "B" : "A")))(
      part
    )
    assert.strictEqual(verify(part).status, 1)
  })

  const receiptFile = (folder: string, change: (text: string) => string) => (directory: string) =>
    edit(first(directory, folder), change)(directory)
  const alterations: ReadonlyArray<readonly [what: string, alter: (directory: string) => void]> = [
    ["an altered event", edit("events.ndjson", (text) => text.replace('"valid":true', '"valid":false'))],
    [
      "swapped events",
      edit(
        "events.ndjson",
        lines(([one = "", two = "", ...more]) => [two, one, ...more])
      )
    ],
    [
      "a removed event",
      edit(
        "events.ndjson",
        lines(([, ...more]) => more)
      )
    ],
    ["an altered leaf", edit("leaves.txt", (text) => text.replace(/[1-9a-f]$/mu, "0"))],
    ["another size in the checkpoint", edit("checkpoint", (text) => text.replace("\n13\n", "\n14\n"))],
    ["an altered personal document", edit("personal/documents.txt", (text) => text.replace("Köln", "Bonn"))],
    ["an altered receipt", receiptFile("receipts", (text) => text.replace("DE123456789", "DE123456780"))],
    [
      "an altered proof of a receipt",
      receiptFile(
        "proofs",
        lines((all) => all.with(3, all[4] ?? ""))
      )
    ]
  ]
  for (const [what, alter] of alterations) {
    it.effect(`rejects an export with ${what}`, function* () {
      const directory = yield* copy
      const receipts = receiptsIn(directory).slice(0, 1)
      alter(directory)
      const { said, status } = verify(directory, { receipts })
      assert.deepStrictEqual([status, said.startsWith("WRONG: ")], [1, true], said)
    })
  }

  it.effect("rejects another key with the same name", function* () {
    const { directory } = yield* Exported
    const [name = ""] = key.split("+")
    const refused = verify(directory, { by: formatVerifier({ ...signerOf("other.example/log"), name }) })
    assert.deepStrictEqual(refused, { status: 1, said: "WRONG: signature\n" })
  })
})
