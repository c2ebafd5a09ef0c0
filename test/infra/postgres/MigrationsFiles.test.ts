/** Rules for the files of migrations/, independent of their content (migrations/README.md). */
import { assert, it } from "@effect/vitest"
import { hash } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"

const folder = new URL("../../../migrations/", import.meta.url)

const files = readdirSync(folder, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".sql"))
  .toSorted()
  .map((path) => ({ path, text: readFileSync(new URL(path, folder), "utf8") }))

const isNumbered = ({ path }: { readonly path: string }) => /^\d{4}_/u.test(path)
const digestOf = (text: string) => hash("sha256", text, "hex")

/**
 * The digests of the numbered files. A database rejects a version whose numbered files have other digests than those that created
 * it. So the digests may change only before the release of 0.1.0.
 */
const known = {
  "0001_roles.sql": "06dd83013113ce7eb5953b47446072fa484343b3b0209d1226b5395e2f9aeff1",
  "0002_log.sql": "b8219bcffe38780202005700073a37dbbd27d5743fef5b0f2345ff0399ee9b95",
  "0003_accounts.sql": "b04e5cfb8e36352b1b20042abf5290bb1e8746b479acd759986c6baafafd5128",
  "0004_limits.sql": "876efde63db6aa62383f8907e5e53eb58c427a3a6347f6b04820615ecfbfa96d",
  "0005_outbox.sql": "1444a6a4ba05ae6328e632b08152c1e6c1b6237a10f9e8208f24142858048174",
  "0006_notary.sql": "d432833a73873c1441c483a4bba87b30b56012b39e01b5dfd4b5207e31e550c7",
  "0007_projections.sql": "38537576c016d1e069e0a3c7762f6e946e12da2cee5359b47a1c3b0f596a929f",
  "0008_personal_documents.sql": "8cede5534d2e04181a6ef66ace0775a7e53f11c14fc5ce2a5919737d1c7b3005",
  "0009_uploads.sql": "f191ffa8cc85624cdfdd29dd86950f0bd7f200ed35eed69ead6bd895922ee299"
}

/**
 * The digest of all files that are applied again after a change. Such a change needs a new numbered file: an older version would
 * otherwise apply its own files again.
 */
const repeatable = "05882b0b9863c4e1f2d8eda9f963d38eca6b03ab579b11dd411dbfc4624e6e30"

it("numbered files are unchanged since their release", () => {
  assert.deepStrictEqual(Object.fromEntries(files.filter(isNumbered).map(({ path, text }) => [path, digestOf(text)])), known)
})

it("functions, views and rights change only together with a new numbered file", () => {
  const digests = files.filter((file) => !isNumbered(file)).map(({ path, text }) => `${path} ${digestOf(text)}\n`)
  assert.strictEqual(digestOf(digests.join("")), repeatable)
})

it("numbered files have no gap, and every other file is applied", () => {
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

it("every object is defined once", () => {
  const definition =
    /^CREATE (?:OR REPLACE )?(SCHEMA|TABLE|VIEW|FUNCTION|(?:UNIQUE )?INDEX|TYPE|DOMAIN|SEQUENCE|TRIGGER)\s+(?:IF NOT EXISTS )?(?!ON )([\w.]+)/gmu
  const defined = files.flatMap(({ text }) => [...text.matchAll(definition)].map(([, kind, name]) => `${kind} ${name}`))
  assert.isAbove(defined.length, 50)
  assert.deepStrictEqual(
    defined.filter((object, index) => defined.indexOf(object) !== index),
    []
  )
})
