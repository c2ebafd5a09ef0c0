import { spawnSync } from "node:child_process"
import { appendFileSync, cpSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { beforeEach, describe } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { formatVerifier } from "#events/log/merkle/NoteKeys.ts"
import { command } from "#test/support/CommandLine.ts"
import { carrying, edit, Exported, file, first, key, lines, testLayer, verify } from "#test/support/ExportedLog.ts"
import { signerOf } from "#test/support/log/Keys.ts"
import { assert, layer } from "#test/support/Test.ts"

const withoutLine = (name: string, index: number) =>
  edit(
    name,
    lines((all) => all.toSpliced(index, 1))
  )
const swapped = edit(
  "events.ndjson",
  lines((all) => all.with(4, all[5] ?? "").with(5, all[4] ?? ""))
)
const replace = (name: string, from: string, to: string) => edit(name, (text) => text.replace(from, to))
const replaceFirst = (folder: string, from: string | RegExp, to: string) => (directory: string) =>
  edit(first(directory, folder), (text) => text.replace(from, to))(directory)
const removeFirst = (folder: string) => (directory: string) => rmSync(join(directory, first(directory, folder)))
const add = (name: string, text: string) => (directory: string) => appendFileSync(join(directory, name), text)

/** Alterations of an export, each with the finding that it must cause. */
const edits: ReadonlyArray<readonly [name: string, edit: (directory: string) => void, finding: RegExp]> = [
  ["changed data of an event", replace("events.ndjson", '"valid":true', '"valid":false'), /^3: the event differs from/u],
  [
    "changed white space in an event",
    replace("events.ndjson", '"valid":true', '"valid": true'),
    /^3: events.ndjson: The line is not an event in canonical form/u
  ],
  ["a removed event", withoutLine("events.ndjson", 4), /^4: the event is missing/u],
  ["two swapped events", swapped, /^4: the event is missing/u],
  [
    "missing events at the end of the log",
    edit(
      "events.ndjson",
      lines((all) => [...all.slice(0, 10), ""])
    ),
    /^10: the events from this position to \d+ are missing/u
  ],
  [
    "a repeated event at the end of the log",
    edit("events.ndjson", (text) => text + (text.split("\n")[0] ?? "") + "\n"),
    /^0: events.ndjson has this event out of order/u
  ],
  [
    "a changed leaf in leaves.txt",
    edit(
      "leaves.txt",
      lines((all) => all.with(3, `3 ${"0".repeat(64)}`))
    ),
    /^3: the stored tree has a wrong hash for this event/u
  ],
  ["a changed row of a table", replace("receipts.csv", "mismatch", "match"), /^\d+: receipts.csv has a different row/u],
  ["a removed row of a table", withoutLine("verifications.csv", 2), /^5: verifications.csv has no row/u],
  [
    "an added row of a table",
    edit("receipts.csv", (text) => `${text}999;2026-11-21\r\n`),
    /receipts.csv has a row that matches no event: 999/u
  ],
  [
    "a changed receipt file",
    replaceFirst("receipts", "DE123456789", "DE123456780"),
    /^\d+: the file of the receipt VP-QC-\S+ differs from the receipt.s event/u
  ],
  ["a removed receipt file", removeFirst("receipts"), /^\d+: the receipt VP-QC-\S+ has no file/u],
  [
    "a changed index in a proof",
    replaceFirst("proofs", /^index \d+$/mu, "index 1"),
    /^\d+: the proof of the receipt VP-QC-\S+ is invalid/u
  ],
  [
    "a changed leaf in a proof",
    replaceFirst("proofs", /^extra .*$/mu, carrying("another leaf")),
    /^\d+: the proof of the receipt VP-QC-\S+ is invalid: The proof belongs to another event/u
  ],
  ["an added receipt file", add("receipts/VP-QC-1.json", "{}"), /receipts\/VP-QC-1.json belongs to no event/u],
  [
    "a changed personal document",
    replace("personal/documents.txt", "Köln", "Bonn"),
    /^\d+: the personal document does not match the digest in its event/u
  ],
  ["a removed personal document", withoutLine("personal/documents.txt", 1), /^\d+: the personal document is missing/u],
  [
    "an added leaf in leaves.txt",
    edit("leaves.txt", (text) => `${text}999 ${"0".repeat(64)}\n`),
    /^-: leaves.txt has an unexpected line: 999/u
  ],
  [
    "a personal document inside an event",
    replace("events.ndjson", ',"position":2,', ',"personal":{"name":"x"},"position":2,'),
    /^2: events.ndjson contains a personal document/u
  ],
  ["a removed proof", removeFirst("proofs"), /^\d+: the receipt VP-QC-\S+ has no proof/u],
  [
    "an API key's file with the content of another event",
    (directory) => cpSync(join(directory, first(directory, "receipts")), join(directory, first(directory, "keys"))),
    /^\d+: the file of the key \S+ is not the event that issued it/u
  ],
  [
    "an added personal document",
    edit("personal/documents.txt", (text) => `${text}999 {}\n`),
    /^-: personal\/documents.txt has an unexpected line: 999/u
  ],
  [
    "a changed name in the table of personal data",
    replace("personal/personal.csv", "Köln", "Bonn"),
    /^\d+: personal\/personal.csv has a different row/u
  ],
  ["a changed description of the tables", replace("index.xml", "Belegnummer", "Nummer"), /index.xml was changed/u],
  ["an added table", add("receipts_corrected.csv", "x"), /^-: receipts_corrected.csv is not a file of the export/u],
  [
    "an added public key in verifier-key.txt",
    add("verifier-key.txt", "log+00000000+AAAA\n"),
    /^-: verifier-key.txt lacks the key that signed the checkpoint/u
  ],
  [
    "changed line endings of a table",
    edit("receipts.csv", (text) => text.replaceAll("\r\n", "\n")),
    /^-: receipts.csv does not begin with the names/u
  ],
  [
    "changed line endings in events.ndjson",
    edit("events.ndjson", (text) => text.replaceAll("\n", "\r\n")),
    /^0: events.ndjson: The line is not an event in canonical form|^0: events.ndjson: The line is not an event in JSON/u
  ],
  [
    "changed line endings in leaves.txt",
    replace("leaves.txt", "\n", "\r\n"),
    /^0: leaves.txt does not have the leaf of this event/u
  ],
  ["a missing last newline", edit("leaves.txt", (text) => text.trimEnd()), /: leaves.txt does not have the leaf of this event/u],
  [
    "a byte order mark before a table",
    edit("plans.csv", (text) => `\ufeff${text}`),
    /^-: plans.csv does not begin with the names/u
  ],
  [
    "a byte order mark before the events",
    edit("events.ndjson", (text) => `\ufeff${text}`),
    /^0: events.ndjson: The line is not an event in JSON/u
  ],
  [
    "a byte in a table that is not UTF-8",
    (directory) => appendFileSync(join(directory, "events.csv"), Buffer.from([0xff])),
    /events.csv has a row that matches no event: the rest is not UTF-8/u
  ],
  [
    "a changed API key in a row",
    replace("verifications.csv", "svc_live_", "svc_dead_"),
    /verifications.csv has a different row/u
  ],
  ["a changed key file", replaceFirst("keys", "svc_live_", "svc_dead_"), /^\d+: the proof of the key \S+ is invalid/u],
  ["a removed key file", removeFirst("keys"), /^\d+: the key \S+ has no file/u],
  ["an added key file", add("keys/x.json", "{}"), /^-: keys\/x.json belongs to no event of the export/u],
  [
    "a changed period in manifest.json",
    replace("manifest.json", '"recorded_before": null', '"recorded_before": "2020-01-01T00:00:00.000Z"'),
    /^0: the event was recorded at \S+, outside of the period in manifest.json/u
  ],
  ["a byte order mark before the README", edit("README.txt", (text) => `\ufeff${text}`), /README.txt was changed/u],
  ["a changed README", replace("README.txt", "PRÜFEN", "GLAUBEN"), /README.txt was changed/u]
]

/** The verifier in docs/audit, which shares no code with the service. Without Python or OpenSSL its tests are skipped with a message. */
const verifier = join(import.meta.dirname, "../../docs/audit/verify.py")
const isMissing = ["python3 --version", "openssl version"].some((line) => {
  const [program = "", argument = ""] = line.split(" ")
  return spawnSync(program, [argument]).status !== 0
})

const verifyInPython = (
  directory: string,
  { by = key, receipts = [] }: { by?: string; receipts?: ReadonlyArray<string> } = {}
) => {
  const { status, stderr, stdout } = spawnSync("python3", [verifier, directory, by, ...receipts], { encoding: "utf8" })
  return { status, said: stdout + stderr }
}

const receiptsIn = (directory: string) => readdirSync(join(directory, "receipts")).map((name) => basename(name, ".json"))

/** Returns the folder of a new copy of the export. */
const copied = Effect.map(Exported, ({ directory, folder }) => {
  const copy = mkdtempSync(join(folder, "copy-"))
  cpSync(directory, copy, { recursive: true })
  return copy
})

const decodeEvent = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ recorded_at: Schema.String })))

layer(testLayer, { excludeTestServices: true })("an export for auditors", (it) => {
  describe("`vatproof audit verify --export`", () => {
    for (const [name, change, finding] of edits) {
      it.effect(`detects ${name}`, function* () {
        const copy = yield* copied
        change(copy)
        const report = yield* verify(copy)
        const said = report.findings.map(({ message, position }) => `${position ?? "-"}: ${message}`)
        assert.isFalse(report.ok)
        assert.isTrue(
          said.some((line) => finding.test(line)),
          said.join("\n")
        )
      })
    }

    it.effect("rejects an export that contains a symbolic link", function* () {
      const { directory } = yield* Exported
      const copy = yield* copied
      rmSync(join(copy, "receipts"), { recursive: true })
      symlinkSync(join(directory, "receipts"), join(copy, "receipts"))
      const { failure } = yield* command("audit", "verify", "--export", copy, "--key", key)
      assert.match(failure ?? "", /^receipts is neither a file nor a folder \(SymbolicLink\)/u)
    })

    it.effect("prints only the first 50 of many findings", function* () {
      const copy = yield* copied
      for (let number = 0; number < 60; number += 1) writeFileSync(join(copy, "receipts", `${number}.json`), "{}")
      const { failure, output } = yield* command("audit", "verify", "--export", copy, "--key", key)
      assert.match(failure ?? "", /^The export was altered: the verification found 60 defects/u)
      assert.lengthOf(output.match(/belongs to no event/gu) ?? [], 50)
      assert.include(output, "… and 10 more")
    })

    it.effect("replaces the control characters of an altered export in its output", function* () {
      const copy = yield* copied
      appendFileSync(join(copy, "receipts", "x\u001b[2J\u001b[HThe export is intact\r\n\u009d"), "{}")
      appendFileSync(join(copy, "leaves.txt"), "\u001b]0;whole\u0007\n")
      writeFileSync(join(copy, ".DS_Store"), "left by a system")
      const { output } = yield* command("audit", "verify", "--export", copy, "--key", key)
      assert.match(output, /2 defects in \d+ events/u)
      assert.include(output, "receipts/x?[2J?[HThe export is intact")
      assert.notMatch(output, /(?!\n)\p{Cc}/u)
      const { output: json } = yield* command("audit", "verify", "--export", copy, "--key", key, "--json")
      assert.notMatch(json, /(?!\n)\p{C}/u)
      assert.include((yield* verify(copy)).findings[1]?.message ?? "", "The export is intact\r\n\u009d belongs to no event")
    })
  })

  describe("the Python verifier of docs/audit", () => {
    beforeEach((context) => context.skip(isMissing, "skipped: python3 or openssl is not installed"))

    it.effect("verifies an export and its receipts, with and without the personal documents", function* () {
      const directory = yield* copied
      const receipts = receiptsIn(directory)
      assert.deepStrictEqual(verifyInPython(directory, { receipts }), {
        status: 0,
        said: "Right: 14 leaves, root, signature, 6 personal documents and the proofs of 5 receipts\n"
      })
      edit("personal/documents.txt", (text) => text.replace(/ .*/u, " erased"))(directory)
      assert.strictEqual(verifyInPython(directory, { receipts }).status, 0)
      rmSync(join(directory, "personal"), { recursive: true })
      assert.deepStrictEqual(verifyInPython(directory, { receipts }), {
        status: 0,
        said: "Right: 14 leaves, root, signature, 0 personal documents and the proofs of 5 receipts\n"
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
      assert.match(verifyInPython(part, { receipts: receiptsIn(part) }).said, /^Right: [4-7] leaves/u)
      edit("manifest.json", (text) =>
        text.replace(/("before": \[\s*")(.)/u, (_, start, one) => start + (one === "A" ? "B" : "A"))
      )(part)
      assert.strictEqual(verifyInPython(part).status, 1)
    })

    const alterations: ReadonlyArray<readonly [what: string, alter: (directory: string) => void]> = [
      ["an altered event", replace("events.ndjson", '"valid":true', '"valid":false')],
      ["swapped events", swapped],
      ["a removed event", withoutLine("events.ndjson", 0)],
      ["an altered leaf", edit("leaves.txt", (text) => text.replace(/[1-9a-f]$/mu, "0"))],
      ["a changed size in the checkpoint", replace("checkpoint", "\n14\n", "\n15\n")],
      ["an altered personal document", replace("personal/documents.txt", "Köln", "Bonn")],
      ["an altered receipt", replaceFirst("receipts", "DE123456789", "DE123456780")],
      [
        "an altered proof of a receipt",
        (directory) =>
          edit(first(directory, "proofs"), (text) => text.replace(/(?<=^index .*\n)./mu, (one) => (one === "A" ? "B" : "A")))(
            directory
          )
      ]
    ]
    for (const [what, alter] of alterations) {
      it.effect(`rejects an export with ${what}`, function* () {
        const directory = yield* copied
        const receipts = receiptsIn(directory).slice(0, 1)
        alter(directory)
        const { said, status } = verifyInPython(directory, { receipts })
        assert.deepStrictEqual([status, said.startsWith("WRONG: ")], [1, true], said)
      })
    }

    it.effect(
      "rejects an export if the given public key is not the key that signed it, even if both keys have the same name",
      function* () {
        const { directory } = yield* Exported
        const [name = ""] = key.split("+")
        const refused = verifyInPython(directory, { by: formatVerifier({ ...signerOf("other.example/log"), name }) })
        assert.deepStrictEqual(refused, { status: 1, said: "WRONG: signature\n" })
      }
    )
  })
})
