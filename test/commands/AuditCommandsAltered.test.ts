import { appendFileSync, cpSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { command } from "#test/support/CommandLine.ts"
import { carrying, edit, Exported, first, key, lines, testLayer, verify } from "#test/support/ExportedLog.ts"
import { assert, layer } from "#test/support/Test.ts"

const withoutLine = (name: string, index: number) =>
  edit(
    name,
    lines((all) => all.toSpliced(index, 1))
  )
const replace = (name: string, from: string, to: string) => edit(name, (text) => text.replace(from, to))
const replaceFirst = (folder: string, from: string | RegExp, to: string) => (directory: string) =>
  edit(first(directory, folder), (text) => text.replace(from, to))(directory)
const removeFirst = (folder: string) => (directory: string) => rmSync(join(directory, first(directory, folder)))
const add = (name: string, text: string) => (directory: string) => appendFileSync(join(directory, name), text)

/** An alteration of an export, and the finding it must cause. */
const edits: ReadonlyArray<readonly [name: string, edit: (directory: string) => void, finding: RegExp]> = [
  ["changed data of an event", replace("events.ndjson", '"valid":true', '"valid":false'), /^2: the event is not the one/u],
  [
    "changed white space in an event",
    replace("events.ndjson", '"valid":true', '"valid": true'),
    /^2: events.ndjson: The text is not an event/u
  ],
  ["a removed event", withoutLine("events.ndjson", 4), /^4: the event is missing/u],
  [
    "two swapped events",
    edit(
      "events.ndjson",
      lines((all) => all.with(4, all[5] ?? "").with(5, all[4] ?? ""))
    ),
    /^4: the event is missing/u
  ],
  [
    "a truncated tail",
    edit(
      "events.ndjson",
      lines((all) => [...all.slice(0, 10), ""])
    ),
    /^10: the events up to position \d+ are missing/u
  ],
  [
    "an event appended at the end",
    edit("events.ndjson", (text) => text + (text.split("\n")[0] ?? "") + "\n"),
    /^0: events.ndjson has this event in the wrong place/u
  ],
  [
    "a changed leaf",
    edit(
      "leaves.txt",
      lines((all) => all.with(3, `3 ${"0".repeat(64)}`))
    ),
    /^3: the stored tree does not have the leaf/u
  ],
  ["a changed receipt in the table", replace("receipts.csv", "mismatch", "match"), /^\d+: receipts.csv has a different row/u],
  ["a removed row of the table", withoutLine("verifications.csv", 2), /^4: verifications.csv has no row/u],
  [
    "a forged row",
    edit("receipts.csv", (text) => `${text}999;2026-11-21\r\n`),
    /receipts.csv has a row that no event produces: 999/u
  ],
  [
    "a changed file of a receipt",
    replaceFirst("receipts", "DE123456789", "DE123456780"),
    /^\d+: the file of the receipt VP-QC-\S+ differs from the receipt.s event/u
  ],
  ["a removed file of a receipt", removeFirst("receipts"), /^\d+: the receipt VP-QC-\S+ has no file/u],
  [
    "a changed index in a proof",
    replaceFirst("proofs", /^index \d+$/mu, "index 1"),
    /^\d+: the proof of the receipt VP-QC-\S+ is invalid/u
  ],
  [
    "a changed leaf in a proof",
    replaceFirst("proofs", /^extra .*$/mu, carrying("another leaf")),
    /^\d+: the proof of the receipt VP-QC-\S+ is invalid: it carries the leaf of another event/u
  ],
  ["a forged receipt", add("receipts/VP-QC-1.json", "{}"), /receipts\/VP-QC-1.json belongs to no event/u],
  [
    "a changed personal document",
    replace("personal/documents.txt", "Köln", "Bonn"),
    /^\d+: the personal document is not the one that was signed/u
  ],
  ["a removed personal document", withoutLine("personal/documents.txt", 1), /^\d+: the personal document is missing/u],
  [
    "an additional leaf",
    edit("leaves.txt", (text) => `${text}999 ${"0".repeat(64)}\n`),
    /^-: leaves.txt has a line that does not belong there: 999/u
  ],
  [
    "a personal document among the events",
    replace("events.ndjson", ',"position":2,', ',"personal":{"name":"x"},"position":2,'),
    /^2: events.ndjson contains a personal document/u
  ],
  ["a removed proof", removeFirst("proofs"), /^\d+: the receipt VP-QC-\S+ has no proof/u],
  [
    "a key's file with the content of another event",
    (directory) => cpSync(join(directory, first(directory, "receipts")), join(directory, first(directory, "keys"))),
    /^\d+: the file of the key \S+ is not the event that issued it/u
  ],
  [
    "a forged personal document",
    edit("personal/documents.txt", (text) => `${text}999 {}\n`),
    /^-: personal\/documents.txt has a line that does not belong there: 999/u
  ],
  [
    "a changed name in the table of personal data",
    replace("personal/personal.csv", "Köln", "Bonn"),
    /^\d+: personal\/personal.csv has a different row/u
  ],
  ["a changed description of the tables", replace("index.xml", "Belegnummer", "Nummer"), /index.xml was changed/u],
  ["a foreign table", add("receipts_corrected.csv", "x"), /^-: receipts_corrected.csv is not a file of the export/u],
  [
    "a foreign public key in the export",
    add("verifier-key.txt", "log+00000000+AAAA\n"),
    /^-: verifier-key.txt lacks the key that signed the checkpoint/u
  ],
  [
    "changed line ends of a table",
    edit("receipts.csv", (text) => text.replaceAll("\r\n", "\n")),
    /^-: receipts.csv does not begin with the names/u
  ],
  [
    "changed line ends of the events",
    edit("events.ndjson", (text) => text.replaceAll("\n", "\r\n")),
    /^0: events.ndjson: The text is not an event in canonical form|^0: events.ndjson: The text is not an event/u
  ],
  [
    "changed line ends of the leaves",
    replace("leaves.txt", "\n", "\r\n"),
    /^0: leaves.txt does not have the leaf of this event/u
  ],
  ["a removed last line end", edit("leaves.txt", (text) => text.trimEnd()), /: leaves.txt does not have the leaf of this event/u],
  ["a byte order mark", edit("plans.csv", (text) => `\ufeff${text}`), /^-: plans.csv does not begin with the names/u],
  [
    "a byte order mark before the events",
    edit("events.ndjson", (text) => `\ufeff${text}`),
    /^0: events.ndjson: The text is not an event/u
  ],
  [
    "a byte that is not UTF-8",
    (directory) => appendFileSync(join(directory, "events.csv"), Buffer.from([0xff])),
    /events.csv has a row that no event produces: the rest is not UTF-8/u
  ],
  ["a changed key of a row", replace("verifications.csv", "svc_live_", "svc_dead_"), /verifications.csv has a different row/u],
  ["a changed file of a key", replaceFirst("keys", "svc_live_", "svc_dead_"), /^\d+: the proof of the key \S+ is invalid/u],
  ["a removed file of a key", removeFirst("keys"), /^\d+: the key \S+ has no file/u],
  ["a forged key", add("keys/x.json", "{}"), /^-: keys\/x.json belongs to no event of the export/u],
  [
    "a changed period",
    replace("manifest.json", '"recorded_before": null', '"recorded_before": "2020-01-01T00:00:00.000Z"'),
    /^0: the event was recorded at \S+, outside of the period in manifest.json/u
  ],
  ["a byte order mark before the README", edit("README.txt", (text) => `\ufeff${text}`), /README.txt was changed/u],
  ["a changed README", replace("README.txt", "PRÜFEN", "GLAUBEN"), /README.txt was changed/u]
]

layer(testLayer, { excludeTestServices: true })("vatproof audit verify", (it) => {
  for (const [name, change, finding] of edits) {
    it.effect(`detects in an altered export: ${name}`, function* () {
      const { directory, folder } = yield* Exported
      const copy = join(folder, "copy")
      rmSync(copy, { recursive: true, force: true })
      cpSync(directory, copy, { recursive: true })
      change(copy)
      const report = yield* verify(copy)
      const said = report.findings.map(({ message, position }) => `${position ?? "-"}: ${message}`)
      assert.isFalse(report.ok)
      assert.isTrue(
        said.some((line) => finding.test(line)),
        said.join("\n")
      )
      const { failure } = yield* command("audit", "verify", "--export", copy, "--key", key)
      assert.match(failure ?? "", /the verification found \d+ defects?/u)
    })
  }

  it.effect("rejects an export that contains a symbolic link", function* () {
    const { directory, folder } = yield* Exported
    const copy = join(folder, "linked")
    cpSync(directory, copy, { recursive: true })
    rmSync(join(copy, "receipts"), { recursive: true })
    symlinkSync(join(directory, "receipts"), join(copy, "receipts"))
    const { failure } = yield* command("audit", "verify", "--export", copy, "--key", key)
    assert.match(failure ?? "", /^receipts is neither a file nor a folder \(SymbolicLink\)/u)
  })

  it.effect("prints no control characters of an altered export", function* () {
    const { directory, folder } = yield* Exported
    const copy = join(folder, "steering")
    cpSync(directory, copy, { recursive: true })
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
