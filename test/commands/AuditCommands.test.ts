import { appendFileSync, cpSync, readdirSync, readFileSync, rmSync, writeFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { formatVerifier } from "#events/log/NoteKeys.ts"
import { checkpointOf, signer, signing, temporaryFolder } from "#test/support/Auditing.ts"
import { command, commandJson } from "#test/support/CommandLine.ts"
import { invalidities } from "#test/support/ContentModels.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { tamper } from "#test/support/Tampering.ts"

const key = formatVerifier(signer)
/** A line of a proof, with a leaf beside what is proved. */
const carrying = (leaf: string) => `extra ${Buffer.from(leaf).toString("base64")}`

const company = { company_name: 'Müller & "Söhne"; GmbH', company_city: "Köln", requester_vat_id: "DE123456789" }

/** A folder to work in, and an export of the whole log in it. */
class Exported extends Context.Service<
  Exported,
  { readonly folder: string; readonly directory: string; readonly apiKey: string }
>()("vatproof/test/Exported") {}

const exported = Effect.gen(function* () {
  const service = yield* RunningService.RunningService
  const folder = yield* temporaryFolder
  const apiKey = yield* service.newKey
  yield* RunningService.setPlan(apiKey, "business")
  for (let i = 0; i < 5; i += 1) {
    yield* service.validate("ATU12345678", { key: apiKey })
    yield* service.validate("DE123456789", { key: apiKey, query: company })
  }
  yield* service.validate("ATU12345678")
  yield* checkpointOf(service, 13)
  const directory = join(folder, "export")
  const { failure } = yield* command("audit", "export", "--out", directory)
  assert.isNull(failure)
  return Exported.of({ folder, directory, apiKey })
})

const testLayer = Layer.effect(Exported, exported).pipe(
  Layer.provideMerge(
    Layer.effect(
      RunningService.RunningService,
      Effect.flatMap(temporaryFolder, (folder) => RunningService.make(signing(folder)))
    )
  ),
  Layer.provideMerge(RunningService.layerGround)
)

const Report = Schema.Struct({
  ok: Schema.Boolean,
  findings: Schema.Array(Schema.Struct({ position: Schema.NullOr(Schema.Int), message: Schema.String }))
})

const verify = (directory: string) => commandJson(Report, "audit", "verify", "--export", directory, "--key", key)

const file = (directory: string, name: string) => ({
  text: readFileSync(join(directory, name), "utf8"),
  write: (text: string) => writeFileSync(join(directory, name), text)
})

const edit = (name: string, change: (text: string) => string) => (directory: string) => {
  const { text, write } = file(directory, name)
  const changed = change(text)
  assert.notStrictEqual(changed, text)
  write(changed)
}

const lines = (change: (lines: ReadonlyArray<string>) => ReadonlyArray<string>) => (text: string) =>
  change(text.split("\n")).join("\n")

const first = (directory: string, folder: string) => join(folder, readdirSync(join(directory, folder))[0] ?? "")

/** What somebody does to an export, and the finding it must give. */
const edits: ReadonlyArray<readonly [name: string, edit: (directory: string) => void, finding: RegExp]> = [
  [
    "the data of an event",
    edit("events.ndjson", (text) => text.replace('"valid":true', '"valid":false')),
    /^2: the event is not the one/u
  ],
  [
    "an event's white space",
    edit("events.ndjson", (text) => text.replace('"valid":true', '"valid": true')),
    /^2: events.ndjson: This is no event/u
  ],
  [
    "an event removed",
    edit(
      "events.ndjson",
      lines((all) => all.toSpliced(4, 1))
    ),
    /^4: the event is missing/u
  ],
  [
    "two events swapped",
    edit(
      "events.ndjson",
      lines((all) => all.with(4, all[5] ?? "").with(5, all[4] ?? ""))
    ),
    /^4: the event is missing/u
  ],
  [
    "the tail cut",
    edit(
      "events.ndjson",
      lines((all) => [...all.slice(0, 10), ""])
    ),
    /^10: the events up to position \d+ are missing/u
  ],
  [
    "an event put at the end",
    edit("events.ndjson", (text) => text + (text.split("\n")[0] ?? "") + "\n"),
    /^0: .*does not belong/u
  ],
  [
    "a leaf",
    edit(
      "leaves.txt",
      lines((all) => all.with(3, `3 ${"0".repeat(64)}`))
    ),
    /^3: the stored tree does not have the leaf/u
  ],
  [
    "a receipt in the table",
    edit("receipts.csv", (text) => text.replace("mismatch", "match")),
    /^\d+: receipts.csv has another row/u
  ],
  [
    "a row of the table removed",
    edit(
      "verifications.csv",
      lines((all) => all.toSpliced(2, 1))
    ),
    /^4: verifications.csv has no row/u
  ],
  [
    "a row made up",
    edit("receipts.csv", (text) => `${text}999;2026-11-21\r\n`),
    /receipts.csv has a row that is no event's: 999/u
  ],
  [
    "a receipt's file",
    (directory) => edit(first(directory, "receipts"), (text) => text.replace("Köln", "Bonn"))(directory),
    /^\d+: the file of the receipt VP-QC-\S+ is not its event/u
  ],
  [
    "a receipt's file removed",
    (directory) => rmSync(join(directory, first(directory, "receipts"))),
    /^\d+: the receipt VP-QC-\S+ has no file/u
  ],
  [
    "a proof",
    (directory) => edit(first(directory, "proofs"), (text) => text.replace(/^index \d+$/mu, "index 1"))(directory),
    /^\d+: the proof of the receipt VP-QC-\S+ does not hold/u
  ],
  [
    "the leaf that a proof carries",
    (directory) => edit(first(directory, "proofs"), (text) => text.replace(/^extra .*$/mu, carrying("another leaf")))(directory),
    /^\d+: the proof of the receipt VP-QC-\S+ does not hold: it carries another leaf/u
  ],
  [
    "a receipt made up",
    (directory) => appendFileSync(join(directory, "receipts", "VP-QC-1.json"), "{}"),
    /receipts\/VP-QC-1.json is in no event/u
  ],
  ["the description of the tables", edit("index.xml", (text) => text.replace("Belegnummer", "Nummer")), /index.xml was changed/u],
  ["the README", edit("README.txt", (text) => text.replace("PRÜFEN", "GLAUBEN")), /README.txt was changed/u]
]

layer(testLayer, { excludeTestServices: true })("vatproof audit", (it) => {
  it.effect("exports what verifies, with the tables that the tax authorities' programs read", () =>
    Effect.gen(function* () {
      const { directory } = yield* Exported
      assert.deepStrictEqual(yield* verify(directory), { ok: true, findings: [] })
      // It has company names and addresses: for nobody else on the machine.
      assert.strictEqual(statSync(directory).mode & 0o777, 0o700)
      assert.sameMembers(readdirSync(directory), [
        "README.txt",
        "checkpoint",
        "events.csv",
        "events.ndjson",
        "gdpdu-01-09-2004.dtd",
        "index.xml",
        "leaves.txt",
        "manifest.json",
        "proofs",
        "receipts",
        "receipts.csv",
        "verifications.csv"
      ])
      assert.deepStrictEqual(invalidities(file(directory, "index.xml").text, file(directory, "gdpdu-01-09-2004.dtd").text), [])
      const [header = "", row = ""] = file(directory, "receipts.csv").text.split("\r\n")
      assert.match(header, /^"position";"recorded_on";"recorded_at";"receipt_id";/u)
      assert.include(row, '"Müller & ""Söhne""; GmbH"')
      assert.lengthOf(readdirSync(join(directory, "proofs")), 5)
    })
  )

  for (const [name, change, finding] of edits) {
    it.effect(`finds in an export that somebody changed ${name}`, () =>
      Effect.gen(function* () {
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
        assert.match(failure ?? "", /findings/u)
      })
    )
  }

  it.effect("refuses an export whose checkpoint or extent was changed", () =>
    Effect.gen(function* () {
      const { directory, folder } = yield* Exported
      const changes = [
        ["checkpoint", (text: string) => text.replace("\n", "/1\n")],
        ["manifest.json", (text: string) => text.replace('"from": 0', '"from": 1')],
        ["manifest.json", (text: string) => text.replace('"format"', '"Format"')]
      ] as const
      for (const [name, change] of changes) {
        const copy = join(folder, "refused")
        rmSync(copy, { recursive: true, force: true })
        cpSync(directory, copy, { recursive: true })
        edit(name, change)(copy)
        const { failure } = yield* command("audit", "verify", "--export", copy, "--key", key)
        assert.match(failure ?? "", /cannot be used|does not have the hashes/u)
      }
    })
  )

  it.effect("exports a part that verifies against the root of the whole", () =>
    Effect.gen(function* () {
      const { folder } = yield* Exported
      const sql = yield* SqlClient.SqlClient
      const rows = yield* SqlSchema.findAll({
        Request: Schema.Void,
        Result: Schema.Struct({ at: Schema.DateTimeUtcFromDate }),
        execute: () =>
          sql`SELECT date_trunc('milliseconds', recorded_at) AS at FROM vatproof.events WHERE position IN (5, 10) ORDER BY position`
      })(undefined)
      const [from = "", to = ""] = rows.map(({ at }) => JSON.stringify(at).replaceAll('"', ""))
      const out = join(folder, "part")
      const part = yield* commandJson(
        Schema.Struct({ from: Schema.Int, to: Schema.Int, size: Schema.Int }),
        "audit",
        "export",
        "--from",
        from,
        "--to",
        to,
        "--out",
        out
      )
      assert.isTrue(part.from > 0 && part.to > part.from && part.to < part.size, JSON.stringify(part))
      assert.deepStrictEqual(yield* verify(out), { ok: true, findings: [] })
      edit("events.ndjson", (text) => text.replace('"version":', '"version":1'))(out)
      assert.isFalse((yield* verify(out)).ok)
    })
  )

  it.effect("proves one receipt from two files, or from what the service answers", () =>
    Effect.gen(function* () {
      const { apiKey, directory, folder } = yield* Exported
      const { get } = yield* RunningService.RunningService
      const proof = join(directory, first(directory, "proofs"))
      const event = join(directory, first(directory, "receipts"))
      const good = yield* command("audit", "verify", "--proof", proof, "--event", event, "--key", key)
      assert.deepStrictEqual([good.failure, good.output.includes("Proved")], [null, true])
      const alone = yield* command("audit", "verify", "--proof", proof, "--key", key)
      assert.match(alone.output, /Proved.*\n.*data_sha256/u)

      const edited = join(folder, "edited.json")
      writeFileSync(edited, readFileSync(event, "utf8").replace("Köln", "Bonn"))
      const bad = yield* command("audit", "verify", "--proof", proof, "--event", edited, "--key", key)
      assert.match(bad.failure ?? "", /the event is not the one that was signed/u)

      const other = join(folder, "other.tlog-proof")
      writeFileSync(other, readFileSync(proof, "utf8").replace(/^extra .*$/mu, carrying("another leaf")))
      const wrong = yield* command("audit", "verify", "--proof", other, "--event", event, "--key", key)
      assert.match(wrong.failure ?? "", /carries another leaf/u)

      const id = /(VP-QC-\S+)\.tlog-proof$/u.exec(proof)?.[1] ?? ""
      const answer = yield* get(`/v1/audit/proofs/${id}`, { key: apiKey, headers: { accept: "application/json" } })
      const bundle = join(folder, "bundle.json")
      writeFileSync(bundle, JSON.stringify(answer.body, null, 2))
      assert.isNull((yield* command("audit", "verify", "--proof", bundle, "--key", key)).failure)
      writeFileSync(bundle, JSON.stringify(answer.body).replace("Köln", "Bonn"))
      assert.isNotNull((yield* command("audit", "verify", "--proof", bundle, "--key", key)).failure)
    })
  )

  it.effect("verifies the database beside the service, and ends with an error where it was changed", () =>
    Effect.gen(function* () {
      const { directory } = yield* Exported
      const kept = join(directory, "checkpoint")
      const good = yield* command("audit", "verify", "--key", key, "--checkpoint", kept)
      assert.deepStrictEqual([good.failure, good.output.startsWith("The log is whole")], [null, true], good.output)
      assert.match((yield* command("audit", "verify")).failure ?? "", /There is no NOTARY_KEY here/u)
      yield* tamper("UPDATE vatproof.events SET units = units + 1 WHERE position = 2")
      const bad = yield* command("audit", "verify", "--key", key)
      yield* tamper("UPDATE vatproof.events SET units = units - 1 WHERE position = 2")
      assert.match(bad.output, /position 2: the event is not the one that was signed/u)
      assert.match(bad.failure ?? "", /findings/u)
    })
  )
})
