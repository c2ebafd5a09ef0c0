import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { texts } from "#test/support/Batches.ts"
import { command, commandJson, spawned } from "#test/support/CommandLine.ts"
import { invalidities } from "#test/support/ContentModels.ts"
import { carrying, edit, Exported, file, first, key, testLayer, verify } from "#test/support/ExportedLog.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { tamper } from "#test/support/Tampering.ts"
import { assert, layer } from "#test/support/Test.ts"
import * as Rows from "#test/support/Rows.ts"

layer(testLayer, { excludeTestServices: true })("`vatproof audit`", (it) => {
  it.effect(
    "exports a folder that `audit verify` accepts, with a valid index.xml for the tax authorities' programs",
    function* () {
      const { apiKey, directory } = yield* Exported
      assert.deepStrictEqual(yield* verify(directory), { ok: true, findings: [] })
      // The export has company names and addresses, so other users of the machine must not read it.
      assert.strictEqual(statSync(directory).mode & 0o777, 0o700)
      assert.sameMembers(readdirSync(directory), [
        "README.txt",
        "checkpoint",
        "events.csv",
        "events.ndjson",
        "index.dtd",
        "index.xml",
        "keys",
        "keys.csv",
        "leaves.txt",
        "manifest.json",
        "personal",
        "plans.csv",
        "proofs",
        "receipts",
        "receipts.csv",
        "verifications.csv"
      ])
      assert.deepStrictEqual(invalidities(file(directory, "index.xml").text, file(directory, "index.dtd").text), [])
      const [header = ""] = file(directory, "receipts.csv").text.split("\r\n")
      assert.match(header, /^"position";"recorded_on";"recorded_at";"receipt_id";/u)
      assert.include(file(directory, "personal/personal.csv").text, '"Müller & ""Söhne""; GmbH"')
      // Each receipt and the API key have a proof.
      assert.lengthOf(readdirSync(join(directory, "proofs")), 6)
      const prefix = `"${apiKey.slice(0, 12)}"`
      const named = ["verifications.csv", "receipts.csv", "keys.csv"].map(
        (name) => file(directory, name).text.split(prefix).length - 1
      )
      assert.deepStrictEqual(named, [5, 5, 1])
    }
  )

  it.effect("rejects an export whose checkpoint or manifest was changed", function* () {
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
      assert.match(failure ?? "", /is not valid|lacks the tree hashes/u)
    }
  })

  it.effect("exports tables of validations and receipts whose units sum to the units of all events", function* () {
    const { directory } = yield* Exported
    const unitsIn = (name: string) => {
      const [header = "", ...rows] = file(directory, name).text.trimEnd().split("\r\n")
      const column = header.split(";").indexOf('"units"')
      // Quoted cells may contain a semicolon.
      const cellsOf = (row: string) => [...row.matchAll(/(?:^|;)("(?:[^"]|"")*"|[^;]*)/gu)].map(([, cell]) => cell)
      return rows.reduce((sum, row) => sum + Number(cellsOf(row)[column]), 0)
    }
    assert.strictEqual(unitsIn("events.csv"), 11)
    assert.strictEqual(unitsIn("verifications.csv") + unitsIn("receipts.csv"), 11)
  })

  it.effect("exports the events of a period, and verifies that export with the checkpoint of the whole log", function* () {
    const { folder } = yield* Exported
    const rows = yield* Rows.all(
      { at: Schema.DateTimeUtcFromDate },
      (sql) =>
        sql`SELECT date_trunc('milliseconds', recorded_at) AS at FROM vatproof.events WHERE position IN (5, 10) ORDER BY position`
    )
    const [from = "", to = ""] = rows.map(({ at }) => JSON.stringify(at).replaceAll('"', ""))
    const out = join(folder, "part")
    const part = yield* commandJson(
      Schema.Struct({ from: Schema.Int, to: Schema.Int, size: Schema.Int, left_out: Schema.Json }),
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
    assert.deepStrictEqual(part.left_out, { earlier: part.from, later: part.size - part.to })
    assert.deepStrictEqual(yield* verify(out), { ok: true, findings: [] })
    const { output } = yield* command("audit", "verify", "--export", out, "--key", key)
    assert.include(output, `The export leaves out ${part.from} earlier and ${part.size - part.to} later signed events.`)
    // The checkpoint of the new log covers only events before the period.
    const [note = ""] = yield* texts("SELECT note AS text FROM vatproof.checkpoints ORDER BY size LIMIT 1")
    const kept = join(folder, "first checkpoint")
    writeFileSync(kept, note)
    const uncompared = yield* spawned({}, "audit", "verify", "--export", out, "--key", key, "--checkpoint", kept)
    assert.strictEqual(uncompared.code, 2)
    assert.match(
      uncompared.stderr,
      /vatproof: The checkpoint in .*first checkpoint was not compared, because its last event is not in/u
    )
    // A manifest with a longer period than the exported one would hide that events are left out.
    for (const [bound, moment, position] of [
      ["recorded_from", '"2020-01-01T00:00:00.000Z"', part.from - 1],
      ["recorded_before", '"2999-01-01T00:00:00.000Z"', part.to],
      ["recorded_from", "null", part.from - 1],
      ["recorded_before", "null", part.to]
    ] as const) {
      const longer = join(folder, `longer ${bound} ${moment.slice(0, 4)}`)
      cpSync(out, longer, { recursive: true })
      edit("manifest.json", (text) => text.replace(new RegExp(`"${bound}": "[^"]+"`, "u"), `"${bound}": ${moment}`))(longer)
      const { findings } = yield* verify(longer)
      assert.isTrue(
        findings.some(
          (one) => one.position === position && one.message.startsWith("the export leaves out an event of its period")
        )
      )
    }
    const [edge = ""] = readdirSync(join(out, "proofs")).filter((name) => name.startsWith("edge-"))
    rmSync(join(out, "proofs", edge))
    const [{ message } = { message: "" }] = (yield* verify(out)).findings
    assert.match(message, /^proofs\/edge-\d+\.tlog-proof does not prove when/u)
    edit("events.ndjson", (text) => text.replace('"version":', '"version":1'))(out)
    assert.isFalse((yield* verify(out)).ok)
  })

  it.effect(
    "verifies one receipt, given as two files of an export (proof and event) or as the service's response with the proof",
    function* () {
      const { apiKey, directory, folder } = yield* Exported
      const { get } = yield* RunningService.RunningService
      const proof = join(directory, first(directory, "proofs"))
      const event = join(directory, first(directory, "receipts"))
      const good = yield* command("audit", "verify", "--proof", proof, "--event", event, "--key", key)
      assert.deepStrictEqual([good.failure, good.output.includes("Proved")], [null, true])
      const alone = yield* command("audit", "verify", "--proof", proof, "--key", key)
      assert.match(alone.output, /Proved.*\n.*data_sha256/u)

      const edited = join(folder, "edited.json")
      writeFileSync(edited, readFileSync(event, "utf8").replace("DE123456789", "DE123456780"))
      const bad = yield* command("audit", "verify", "--proof", proof, "--event", edited, "--key", key)
      assert.match(bad.failure ?? "", /the event was altered/u)

      const other = join(folder, "other.tlog-proof")
      writeFileSync(other, readFileSync(proof, "utf8").replace(/^extra .*$/mu, carrying("another leaf")))
      const wrong = yield* command("audit", "verify", "--proof", other, "--event", event, "--key", key)
      assert.match(wrong.failure ?? "", /belongs to another event/u)

      const id = /(VP-QC-\S+)\.tlog-proof$/u.exec(proof)?.[1] ?? ""
      const answer = yield* get(`/v1/audit/proofs/${id}`, { key: apiKey, headers: { accept: "application/json" } })
      const bundle = join(folder, "bundle.json")
      writeFileSync(bundle, JSON.stringify(answer.body, null, 2))
      assert.isNull((yield* command("audit", "verify", "--proof", bundle, "--key", key)).failure)
      assert.include((yield* command("audit", "verify", "--proof", bundle, "--key", key)).output, "Its personal document: proved")
      writeFileSync(bundle, JSON.stringify(answer.body).replace("Köln", "Bonn"))
      assert.isNotNull((yield* command("audit", "verify", "--proof", bundle, "--key", key)).failure)
    }
  )

  it.effect("records each export and each verification in the log, with the operator and the reason", function* () {
    const { folder } = yield* Exported
    const out = join(folder, "recorded")
    yield* command("audit", "export", "--out", out, "--reason", "audit of 2026", "--by", "carol")
    yield* command("audit", "verify", "--key", key, "--by", "dave")
    const recorded = yield* Rows.all(
      { type: Schema.String, actor: Schema.String, reason: Schema.NullOr(Schema.String) },
      (sql) => sql`SELECT type, metadata::json ->> 'actor' AS actor, metadata::json ->> 'reason' AS reason
          FROM vatproof.events WHERE stream_id = 'log' ORDER BY position DESC LIMIT 2`
    )
    assert.deepStrictEqual(recorded, [
      { type: "LogVerified", actor: "dave", reason: null },
      { type: "LogExported", actor: "carol", reason: "audit of 2026" }
    ])
  })

  it.effect("verifies the database of a running service, and fails after an event was changed", function* () {
    const { directory } = yield* Exported
    const kept = join(directory, "checkpoint")
    const good = yield* command("audit", "verify", "--key", key, "--checkpoint", kept)
    assert.deepStrictEqual([good.failure, good.output.startsWith("The log is intact")], [null, true], good.output)
    assert.match((yield* command("audit", "verify")).failure ?? "", /NOTARY_KEY is not set/u)
    yield* tamper("UPDATE vatproof.events SET units = units + 1 WHERE position = 2")
    const bad = yield* command("audit", "verify", "--key", key)
    yield* tamper("UPDATE vatproof.events SET units = units - 1 WHERE position = 2")
    assert.match(bad.output, /position 2: the event differs from the signed event/u)
    assert.match(bad.failure ?? "", /the verification found \d+ defects?/u)
  })

  it.effect.each([
    [["--proof", "one", "--checkpoint", "kept"], "--checkpoint does not work with --proof: a proof has its own checkpoint"],
    [["--event", "one"], "--event works only with --proof"],
    [["--export", "out", "--event", "one"], "--event works only with --proof"],
    [
      ["--export", "out", "--by", "carol"],
      "--by and --reason work only for the verification of a database, because only that verification is recorded in the log"
    ],
    [["--export", "out", "--proof", "one"], "Give --proof or --export, not both"]
  ] as const)("rejects the command-line options %j, and says why they do not work", ([given, message]) =>
    Effect.map(command("audit", "verify", ...given), ({ failure }) => assert.strictEqual(failure, message))
  )
})
