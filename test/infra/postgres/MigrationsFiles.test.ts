/** Checks the rules for the files in migrations/ (migrations/README.md). */
import { assert, it } from "@effect/vitest"
import { hash } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { tableProjections } from "#events/ProjectionCatalogue.ts"

const folder = new URL("../../../migrations/", import.meta.url)

const files = readdirSync(folder, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".sql") && path !== "schema.sql")
  .toSorted()
  .map((path) => ({ path, text: readFileSync(new URL(path, folder), "utf8") }))

const isNumbered = ({ path }: { readonly path: string }) => /^\d{4}_/u.test(path)
const digestOf = (text: string) => hash("sha256", text, "hex")

/**
 * SHA-256 of each numbered migration. A database rejects a program version whose numbered migrations differ from the applied ones.
 * From the tag v0.1.0 on migrations only go forward: no digest here changes, and a change of the schema is a new file. Until then the
 * baseline may change, and `npm run fixture` makes the fixture of the upgrade test again.
 */
const known = {
  "0001_roles.sql": "37d6b2b2dd47d66c7e87d667bd59f038a8a485805ca9cd4d4aa6d0de428e4bfe",
  "0002_log.sql": "57a04b97f9f0487d78d777c2ea806a41e28ce5aaa79097c0d4fb4536cfa4179b",
  "0003_accounts.sql": "ce3f3f9320390dd3318820a2696f1bb4fb2b4d0a1d75ddbb0840bce49c821b97",
  "0004_limits.sql": "00c0938d09c60458afa61145e1e1b6530828349a0dbb9589c4ce6a92cef561ba",
  "0005_outbox.sql": "e7193d2e4ab438362b12a3b75ce7ea5a2932af8b128145af42cc52750eed07ff",
  "0006_notary.sql": "36093089f85d2d980b8e5f17a0c30dbfa274424d87831e6d5b89972e2727d712",
  "0007_projections.sql": "e35b0cb4ebe05dae0eb433604f7920564301e63d6c63a2951abb0dabccdcf313",
  "0008_personal_documents.sql": "8cede5534d2e04181a6ef66ace0775a7e53f11c14fc5ce2a5919737d1c7b3005",
  "0009_uploads.sql": "f191ffa8cc85624cdfdd29dd86950f0bd7f200ed35eed69ead6bd895922ee299"
}

/**
 * SHA-256 of all files that are applied again after a change. A change needs a new numbered migration, which prevents an older program
 * version from applying its own files again.
 */
const repeatable = "371a04d53ba227db4393754ff611973daf54c96a4ed46fb46067361b78f10539"

it("numbered migrations are unchanged since their release", () => {
  assert.deepStrictEqual(Object.fromEntries(files.filter(isNumbered).map(({ path, text }) => [path, digestOf(text)])), known)
})

it("functions, views and rights change only together with a new numbered migration", () => {
  const digests = files.filter((file) => !isNumbered(file)).map(({ path, text }) => `${path} ${digestOf(text)}\n`)
  assert.strictEqual(digestOf(digests.join("")), repeatable)
})

it("numbered migrations have no gap, and the folder migrations has no SQL file that the service does not apply", () => {
  const numbered = files.filter(isNumbered).map(({ path }) => /^(\d{4})_[a-z0-9_]+\.sql$/u.exec(path)?.[1])
  assert.deepStrictEqual(
    numbered,
    numbered.map((_, index) => String(index + 1).padStart(4, "0"))
  )
  const others = files.filter((file) => !isNumbered(file)).map(({ path }) => path)
  assert.deepStrictEqual(
    others.filter((path) => !/^functions\/\w+\.sql$/u.test(path)),
    ["projections.sql", "protection.sql", "views.sql"]
  )
})

it("every database object is defined in only one place", () => {
  const definition =
    /^CREATE (?:OR REPLACE )?(SCHEMA|TABLE|VIEW|FUNCTION|(?:UNIQUE )?INDEX|TYPE|DOMAIN|SEQUENCE|TRIGGER)\s+(?:IF NOT EXISTS )?(?!ON )([\w.]+)/gmu
  const defined = files.flatMap(({ text }) => [...text.matchAll(definition)].map(([, kind, name]) => `${kind} ${name}`))
  assert.isAbove(defined.length, 50)
  assert.deepStrictEqual(
    defined.filter((object, index) => defined.indexOf(object) !== index),
    []
  )
})

it("every table of projections.sql is in the catalogue of projections, so that it is rebuilt and audited", () => {
  const text = files.find(({ path }) => path === "projections.sql")?.text ?? ""
  const tables = [...text.matchAll(/^CREATE TABLE IF NOT EXISTS vatproof\.(\w+)/gmu)].map(([, name]) => name)
  assert.sameMembers(
    tables,
    tableProjections.map(({ name }) => name),
    "Add the table to src/events/ProjectionCatalogue.ts"
  )
})
