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

/** Databases reject other numbered files than those that created them. Before the release of 0.1.0 the digests may be renewed. */
const known = {
  "0001_roles.sql": "d81b1d12e1ad74470a7ecd85577e84b3040fdf88ba26b826cf25a32fde3299f3",
  "0002_log.sql": "3b89e637e21804737413e9921413c268f13cbeefe26af39242f577dee7e1304b",
  "0003_accounts.sql": "6333cb56d242992f14a195b0801f7a0aba1b0eece2445360995d4d89357fc56b",
  "0004_limits.sql": "efe93ceb65045a98b636f7254b61577708bc426135e52a298c6f7745833d69f5",
  "0005_outbox.sql": "9045d2af201f9d42ba973b786484debe1a3bf3aa8638adcddd3707123d478895",
  "0006_notary.sql": "2f2092df8bc01432b7f1471cca1c7d06403c26c9330414a60e8407317717c428",
  "0007_projections.sql": "6eee9b79dd068e4f2e8e4d068712f370ecdaad966cf3ade9e239f90972b02a44",
  "0008_personal_documents.sql": "e07ec7b49042b146c7a0a32b88bf9fa9e66e42f0396b9129ca847c9609359af2",
  "0009_uploads.sql": "d5c8be5bf8323af774177733f238f06ab7b3c8a73d8452854f1f51ea20c5d4bd"
}

/**
 * Digest over all files that are applied again after a change. An older version ignores them only if an unknown number comes with
 * them.
 */
const repeatable = "7530f6111a9d7ae40411304b6d74836134d7fb5c114610aef657bf791a4f1e8d"

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
