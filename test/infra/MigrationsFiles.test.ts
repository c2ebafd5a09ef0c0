/** What the files of migrations/ must be, whatever is in them (migrations/README.md). */
import { assert, it } from "@effect/vitest"
import { hash } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"

const folder = new URL("../../migrations/", import.meta.url)

const files = readdirSync(folder, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".sql"))
  .toSorted()
  .map((path) => ({ path, text: readFileSync(new URL(path, folder), "utf8") }))

const isNumbered = ({ path }: { readonly path: string }) => /^\d{4}_/u.test(path)
const digestOf = (text: string) => hash("sha256", text, "hex")

/** Databases refuse other numbered files than those that made them. Until 0.1.0 is released there are none, and the digests may be renewed. */
const known = {
  "0001_roles.sql": "87c298ef64fc3efa38fa48760007c85af2e6a6641eb2676e93dac5e0bfa2d018",
  "0002_log.sql": "4c1b4ad1098f8dc9d65e26a579968276eb71214cdb5adce1df4de1098a1bec39",
  "0003_accounts.sql": "f4a8d7203ac330d8fce083773f31001646e27f0ba19e1b31a5ef1b6144bc5d29",
  "0004_limits.sql": "33635f46480d5f2973223499d7894fb4e7c5d4a00bf1b9f21a35938a82477751",
  "0005_outbox.sql": "713a4cd54124e1517b1e700533989ec102a70d61317c0b258794095d0b673621",
  "0006_notary.sql": "1dad1fec696b6d74e88d6392e28b850322cd434ae3b8ab44165ef5d43a2f6762",
  "0007_projections.sql": "7d3a2391d31bd9298fcfb2aae44a181d8cd2de29ad0cbc20ea584b014224bb93",
  "0008_auditors.sql": "91eea5ab7a0eb1c979d9d504b60d7be3405e1d08b62f3ed3eeb55ef71a59380b",
  "0009_personal_documents.sql": "9ac62bc2a31e1b57b22ce31fd316f48063df067da5cde48f8f7c8b03fbd258e4"
}

/** Of all files that are applied again after a change. An older version leaves them alone only if a number that it does not know comes with them. */
const repeatable = "a62ad26000cc8b1b434f651a640c19ff888f52691a953fc26e468139a7f338b6"

it("numbered files stay as they were released: a new one is added to these, none is changed", () => {
  assert.deepStrictEqual(Object.fromEntries(files.filter(isNumbered).map(({ path, text }) => [path, digestOf(text)])), known)
})

it("functions, views and rights change together with a new numbered file", () => {
  const digests = files.filter((file) => !isNumbered(file)).map(({ path, text }) => `${path} ${digestOf(text)}\n`)
  assert.strictEqual(digestOf(digests.join("")), repeatable)
})

it("numbered files are numbered without a gap, and each other file is applied", () => {
  const numbered = files.filter(isNumbered).map(({ path }) => /^(\d{4})_[a-z0-9_]+\.sql$/u.exec(path)?.[1])
  assert.deepStrictEqual(
    numbered,
    numbered.map((_, index) => String(index + 1).padStart(4, "0"))
  )
  const others = files.filter((file) => !isNumbered(file)).map(({ path }) => path)
  assert.deepStrictEqual(
    others.filter((path) => !/^functions\/\w+\.sql$/u.test(path)),
    ["protection.sql", "views.sql"]
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
