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
  "0001_roles.sql": "9366daf345fe4c7b481f9622cc6d2604027fb6a5d64d435c3986b3c61948b3d3",
  "0002_log.sql": "c326bedac1ab68a6b22f5a446bfb1899bcc6dddd6a7a5db4979b8a6258242af8",
  "0003_accounts.sql": "dcf60b47ffb6f5ad8b07d6a26b6c1a8b65ec51b3ff23c6d6caf11e088f4ab4af",
  "0004_limits.sql": "bce6f885becb52a8562b929d1c606316af0ef9a707ad00ffa34d5bdef9e5d3d0",
  "0005_outbox.sql": "64d9e8b162f0210b428dc9347ddb7886ab0d131608895fcd2d61a002a80030a6",
  "0006_notary.sql": "745a48be33c8e73edef2842be56ca511b6ec106efcac55c52f090f17e8dfd415",
  "0007_projections.sql": "e8a3387dac239dfe9f57ef450385338648380ac6c4a187bdb3aa9f829321f036",
  "0008_personal_documents.sql": "2b2d9b60512e0f32bc078619b9d7baf542307c0a7e21f6ecc0ce80f40e390503",
  "0009_uploads.sql": "56c6eed49815a3b6d6866420e0771ff7d549133b575197d7e496ba070613427a"
}

/**
 * Digest over all files that are applied again after a change. An older version ignores them only if an unknown number comes with
 * them.
 */
const repeatable = "21c8773265b9fc2b4f6bbc2da4fdd205cc6acaf22403b9b77ba24c6879058f9b"

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
