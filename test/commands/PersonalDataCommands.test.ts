/** An erasure removes every copy of a name and an address. All proofs can still be verified. */
import { Effect, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { randomUUID } from "node:crypto"
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { formatVerifier } from "#events/log/merkle/NoteKeys.ts"
import { vatIdEnding } from "#test/support/MagicVatIds.ts"
import { checkpointOf, layerSigned, newAuditor, signing, temporaryFolder } from "#test/support/Auditing.ts"
import { command, commandJson } from "#test/support/CommandLine.ts"
import { why } from "#test/support/Operations.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { confirm, receiptIdOf, receiptsPath } from "#test/support/PaidKey.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { tamper } from "#test/support/Tampering.ts"
import { assert, layer } from "#test/support/Test.ts"
import { signer } from "#test/support/log/Keys.ts"

const key = formatVerifier(signer)
const vatId = "EL100440170"
/** Names, addresses and references that an erasure must remove. Nothing else in the database contains these texts. */
const traces = ["ΠΑΡΑΔΕΙΓΜΑ", "ΕΡΜΟΥ", "Zephyrine Quux", "Quuxweg 77", "INV-live", "INV-cached", "INV-confirmed"]
const company = {
  company_name: "Zephyrine Quux e.K.",
  company_street: "Quuxweg 77",
  company_city: "Köln",
  reference: "INV-confirmed"
}

/** Returns all rows of all tables, as pg_dump would write them. */
const dump = MigratedDatabase.asAdministrator(
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const tables = yield* SqlSchema.findAll({
      Request: Schema.Void,
      Result: Schema.Struct({ name: Schema.String }),
      execute: () => sql`SELECT c.oid::regclass::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind = 'r' AND n.nspname IN ('vatproof', 'public')`
    })(undefined)
    const rows = yield* Effect.forEach(tables, ({ name }) =>
      SqlSchema.findAll({
        Request: Schema.Void,
        Result: Schema.Struct({ row: Schema.String }),
        execute: () => sql`SELECT t::text AS row FROM ${sql.literal(name)} t`
      })(undefined)
    )
    return rows
      .flat()
      .map(({ row }) => row)
      .join("\n")
  })
)

const textIn = (folder: string): string =>
  readdirSync(folder)
    .map((name) => join(folder, name))
    .map((path) => (statSync(path).isDirectory() ? textIn(path) : readFileSync(path, "utf8")))
    .join("\n")

const occurrences = (text: string) => traces.filter((trace) => text.includes(trace))

const Shown = Schema.Struct({
  documents: Schema.Array(
    Schema.Struct({
      position: Schema.Int,
      state: Schema.String,
      document: Schema.NullOr(Schema.Json),
      retain_until: Schema.String
    })
  )
})
const decodeKey = Schema.decodeUnknownEffect(Schema.Struct({ api_key: Schema.String }))
const decodeBatch = Schema.decodeUnknownEffect(Schema.Struct({ batch_id: Schema.String }))
const show = (subject: string) => Effect.map(commandJson(Shown, "personal-data", "show", subject), ({ documents }) => documents)

const settings = { QUALIFIED_CONFIRMATION_COUNTRIES: "EU" }

/** Registers an account whose plan includes qualified confirmations. */
const registered = Effect.gen(function* () {
  const service = yield* RunningService.RunningService
  const email = `${randomUUID()}@example.com`
  const { api_key: apiKey } = yield* decodeKey((yield* service.post("/v1/register", { email })).body)
  yield* command("account", "plan", email, "business", ...why)
  return { service, apiKey, email }
})

layer(layerSigned(settings), { excludeTestServices: true })("`vatproof personal-data`", (it) => {
  it.effect("erases every copy of names and addresses, and keeps all proofs valid", function* () {
    const { apiKey, service } = yield* registered
    const folder = yield* temporaryFolder
    // The other replica is a process with the most verbose log level, so that the test can read all its output.
    const other = yield* RunningService.spawn({
      ...settings,
      ...signing(join(folder, "other")),
      LOG_LEVEL: "trace",
      ACCESS_LOG: "true"
    })
    const answer = yield* service.validate(vatId, { key: apiKey, query: { reference: "INV-live" } })
    assert.containSubset(answer.body, { company_name: "ΠΑΡΑΔΕΙΓΜΑ Α.Ε.", source: "vies" })
    // Both replicas cache the answer.
    const repeated = yield* other.validate(vatId, { key: apiKey, query: { reference: "INV-cached" } })
    assert.containSubset(repeated.body, { company_name: "ΠΑΡΑΔΕΙΓΜΑ Α.Ε.", source: "cache" })
    const receiptId = yield* receiptIdOf(yield* confirm(service, vatId, apiKey, company))
    const { size } = yield* checkpointOf(service, 6)
    const proof = yield* service.get(`/v1/audit/proofs/${receiptId}`, {
      key: apiKey,
      headers: { accept: "application/json" }
    })
    const before = join(folder, "before")
    yield* command("audit", "export", "--out", before, ...why)
    assert.deepStrictEqual(occurrences(textIn(before)), traces)
    assert.deepStrictEqual(occurrences(yield* dump), traces)

    const { output } = yield* command("personal-data", "erase", vatId, ...why)
    assert.match(output, /^3 personal documents are erased.*\n3 of the erased documents were still in their retention period/u)
    assert.deepStrictEqual(occurrences(yield* dump), [])
    yield* MigratedDatabase.execute("DELETE FROM vatproof.latest")
    assert.isNull((yield* command("projections", "rebuild", "--all")).failure)
    assert.deepStrictEqual(occurrences(yield* dump), [])

    // The append of the erasure invalidates the caches of the replicas.
    for (const replica of [service, other]) {
      const { body } = yield* replica.validate(vatId, { key: apiKey })
      assert.containSubset(body, { valid: true, company_name: null, company_address: null, source: "cache" })
    }
    const gone = yield* service.ask(`${receiptsPath}/${receiptId}`, { key: apiKey })
    assert.strictEqual(gone.status, 410)
    assert.containSubset(gone.body, { error: { code: "RECEIPT_ERASED" } })
    assert.include(gone.text, "c2sp.org/tlog-proof@v1")
    const list = yield* service.ask(receiptsPath, { key: apiKey })
    assert.containSubset(list.body, { data: [{ receipt_id: receiptId, target_vat_id: vatId }] })
    const auditor = yield* newAuditor()
    const events = yield* service.get(`/v1/audit/events?receipt_id=${receiptId}`, auditor)
    assert.containSubset(events.body, { data: [{ personal: null }] })
    assert.deepStrictEqual(occurrences(events.text), [])

    assert.include(yield* other.output, "/v1/validate/")
    assert.deepStrictEqual(occurrences(yield* other.output), [])

    yield* checkpointOf(service, size + 3)
    const verified = yield* command("audit", "verify", "--key", key)
    assert.include(verified.output, "3 erased")
    assert.isNull((yield* command("audit", "verify", "--fast", "--key", key)).failure)
    assert.isNull(verified.failure)
    const after = join(folder, "after")
    yield* command("audit", "export", "--out", after, ...why)
    assert.deepStrictEqual(occurrences(textIn(after)), [])
    for (const directory of [before, after]) {
      assert.isNull((yield* command("audit", "verify", "--export", directory, "--key", key)).failure, directory)
    }
    // The export from before the erasure can still be verified without its folder of personal data.
    rmSync(join(before, "personal"), { recursive: true })
    assert.deepStrictEqual(occurrences(textIn(before)), [])
    const without = yield* command("audit", "verify", "--export", before, "--key", key)
    assert.deepStrictEqual([without.failure, without.output.startsWith("The export is intact")], [null, true])
    const kept = join(folder, "proof.json")
    writeFileSync(kept, proof.text)
    assert.include((yield* command("audit", "verify", "--proof", kept, "--key", key)).output, "Its personal document: proved")
  })

  it.effect("keeps erased names out of later receipts, also on a replica that has the names in its cache", function* () {
    const { apiKey, service } = yield* registered
    const cachedVatId = "EL100440190"
    for (const _ of ["live", "cached"]) yield* service.validate(cachedVatId, { key: apiKey })
    yield* command("personal-data", "erase", cachedVatId, ...why)
    const receiptId = yield* receiptIdOf(yield* confirm(service, cachedVatId, apiKey))
    const receipt = yield* service.ask(`${receiptsPath}/${receiptId}`, { key: apiKey })
    assert.containSubset(receipt.body, { result: { valid: true, official_name: "", official_address: "" } })
  })

  it.effect(
    "shows only the batch items with the given VAT ID, and erases the whole chunk of such an item, also in unfinished uploads",
    function* () {
      const { apiKey, email, service } = yield* registered
      const rows = [
        "custom_id,vat_id,name,reference",
        "Quuxweg 77,EL100440180,INV-confirmed,INV-confirmed",
        "INV-live,Zephyrine Quux,Zephyrine Quux,INV-live",
        "INV-cached,EL100440180,,"
      ]
      const headers = { "content-type": "text/csv", prefer: "wait=20" }
      const submit = service.post("/v1/batches", rows.join("\n"), { key: apiKey, headers })
      const { batch_id } = yield* decodeBatch((yield* submit).body)
      yield* MigratedDatabase.execute(`INSERT INTO vatproof.uploads (upload_id, chunk, account_id, items, document)
        SELECT u.id::uuid, 0, b.account_id, u.items, 'INV-confirmed' FROM vatproof.batches b, (VALUES
          ('${randomUUID()}', '{"vat_ids":["EL100440180"]}'), ('${randomUUID()}', '{"vat_ids":["EL100440190"]}')) AS u(id, items)`)
      const shown = (yield* show("EL100440180")).map(({ document }) => document)
      assert.deepInclude(shown, {
        custom_ids: ["Quuxweg 77", "INV-cached"],
        malformed: [null, null],
        additional: [["INV-confirmed"], [""]],
        details: [{ reference: "INV-confirmed" }, {}],
        columns: ["name"]
      })
      assert.notMatch(JSON.stringify(shown), /INV-live|Zephyrine Quux/u, "the other items are not shown")
      yield* command("personal-data", "erase", "EL100440180", ...why)
      assert.deepStrictEqual(occurrences(yield* dump), ["INV-confirmed"])
      const results = yield* service.get(`/v1/batches/${batch_id}/results`, { key: apiKey })
      assert.containSubset(results.body, {
        data: [
          { custom_id: null, vat_id: "EL100440180", status: "final", company_name: null },
          { custom_id: null, vat_id: null, status: "invalid_format" },
          { custom_id: null, vat_id: "EL100440180", status: "final" }
        ]
      })
      const table = yield* service.get(`/v1/batches/${batch_id}/results`, { key: apiKey, headers: { accept: "text/csv" } })
      assert.match(table.text, /^custom_id,vat_id,[a-z_,]*,receipt_id\r\n,"EL100440180","final",/u)
      yield* command("personal-data", "erase", email, ...why)
      assert.deepStrictEqual(occurrences(yield* dump), [])
    }
  )

  it.effect("does not erase a document on legal hold until the hold is released", function* () {
    const { apiKey, service } = yield* registered
    const receiptId = yield* receiptIdOf(yield* confirm(service, "DE123456789", apiKey, company))
    assert.include(
      (yield* command("personal-data", "hold", receiptId, ...why)).output,
      "1 personal documents are now on legal hold"
    )
    const refused = yield* command("personal-data", "erase", receiptId, ...why)
    assert.include(refused.output, "0 personal documents are erased")
    assert.strictEqual(refused.failure, "1 personal documents are on legal hold and were not erased")
    const [held] = yield* show(receiptId)
    const reads = new RegExp(`PersonalDataShown .*"documents":1,"receipt_id":"${receiptId}",.*"actor":"`, "u")
    assert.match(yield* RunningService.everythingLogged, reads)
    assert.containSubset(held, { state: "held", document: { reference: "INV-confirmed" } })
    const audited = yield* command("audit", "verify", "--key", key)
    assert.isNull(audited.failure, audited.output)
    yield* command("personal-data", "release", receiptId, ...why)
    // The document of a rejected confirmation has only the reference.
    const rejected = vatIdEnding("DE", "990004")
    yield* confirm(service, rejected, apiKey, company)
    assert.containSubset(yield* show(rejected), [{ state: "kept", document: { reference: "INV-confirmed" } }])
    assert.include((yield* command("personal-data", "erase", receiptId, ...why)).output, "1 personal documents are erased")
  })

  it.effect(
    "appends an event for each change of a document; the database rejects a change without an event, even by the owner of the tables",
    function* () {
      const { apiKey, service } = yield* registered
      const receiptId = yield* receiptIdOf(yield* confirm(service, "DE123456789", apiKey, company))
      const [kept] = yield* show(receiptId)
      const where = `WHERE position = ${kept?.position}`
      yield* command("personal-data", "hold", receiptId, ...why)
      yield* command("personal-data", "release", receiptId, ...why)
      const other = yield* receiptIdOf(yield* confirm(service, "DE123456789", apiKey, company))
      yield* command("personal-data", "erase", other, ...why)
      const newest = (type: string) => `(SELECT max(position) FROM vatproof.events WHERE type = '${type}')`
      const statements = [
        // `changed_by` names an event about another document (first statement), or an event before the last change (second statement).
        `UPDATE vatproof.personal_documents SET document = NULL, changed_by = ${newest("PersonalDataErased")} ${where}`,
        `UPDATE vatproof.personal_documents SET is_held = true, changed_by = ${newest("PersonalDataHeld")} ${where}`,
        `UPDATE vatproof.personal_documents SET document = NULL ${where}`,
        `UPDATE vatproof.personal_documents SET document = NULL, changed_by = (SELECT next_position FROM vatproof.logs) ${where}`,
        `UPDATE vatproof.personal_documents SET retain_until = now() ${where}`,
        `UPDATE vatproof.personal_documents SET is_held = true ${where}`,
        `DELETE FROM vatproof.personal_documents ${where}`,
        "TRUNCATE vatproof.personal_documents",
        "DROP TABLE vatproof.personal_documents CASCADE",
        "ALTER TABLE vatproof.personal_documents DISABLE TRIGGER append_only"
      ]
      for (const statement of statements) {
        const refused = yield* Effect.flip(MigratedDatabase.execute(statement))
        assert.match(String(refused.reason.cause), /append-only/u, statement)
      }
      assert.containSubset(yield* show(receiptId), [{ state: "kept" }])
    }
  )

  it.effect("makes `audit verify` report an erased document that is restored later", function* () {
    const { apiKey, service } = yield* registered
    const receiptId = yield* receiptIdOf(yield* confirm(service, "DE123456789", apiKey, company))
    yield* tamper("CREATE TABLE public.kept AS TABLE vatproof.personal_documents")
    yield* command("personal-data", "erase", receiptId, ...why)
    yield* tamper(
      "UPDATE vatproof.personal_documents d SET document = k.document FROM public.kept k WHERE k.position = d.position AND d.document IS NULL"
    )
    const { failure, output } = yield* command("audit", "verify", "--key", key)
    assert.match(output, /event \d+ erased the personal document, but the document still exists/u)
    assert.isNotNull(failure)
  })
})
