/** Generates docs/events.md from the catalogue, the comments of the event types, and the fixtures. */
import { Schema } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import * as Catalogue from "#events/Catalogue.ts"

const root = join(import.meta.dirname, "../..")
const file = join(root, "docs/events.md")

/** Returns the comment of each event type, on one line, by the name of the type. */
const meanings = new Map(
  readdirSync(join(root, "src/domain"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts"))
    .flatMap((name) =>
      [
        ...readFileSync(join(root, "src/domain", name), "utf8").matchAll(
          /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\nexport const (\w+) = DomainEvent\.define/gu
        )
      ].map(([, comment = "", type = ""]) => [type, comment.replace(/\s*\n \*\s*/gu, " ").trim()] as const)
    )
)

/** The subset of JSON Schema that event schemas use. */
interface Form {
  readonly type?: string
  readonly $ref?: string
  readonly enum?: ReadonlyArray<unknown>
  readonly properties?: Readonly<Record<string, Form>>
  readonly required?: ReadonlyArray<string>
  readonly items?: Form
  readonly anyOf?: ReadonlyArray<Form>
}
const Form: Schema.Codec<Form> = Schema.Struct({
  type: Schema.optionalKey(Schema.String),
  $ref: Schema.optionalKey(Schema.String),
  enum: Schema.optionalKey(Schema.Array(Schema.Unknown)),
  properties: Schema.optionalKey(
    Schema.Record(
      Schema.String,
      Schema.suspend(() => Form)
    )
  ),
  required: Schema.optionalKey(Schema.Array(Schema.String)),
  items: Schema.optionalKey(Schema.suspend(() => Form)),
  anyOf: Schema.optionalKey(Schema.Array(Schema.suspend(() => Form)))
})
const Document = Schema.Struct({ schema: Form, definitions: Schema.Record(Schema.String, Form) })
const decodeDocument = Schema.decodeUnknownSync(Document)
const decodeExamples = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.NonEmptyArray(Schema.Json)))

type Field = readonly [path: string, form: string]

/** Returns the fields of a schema, including nested fields: `answer.code`, `attempts[].source`. */
const fieldsOf = (form: Form, resolve: (form: Form) => Form, path: string): ReadonlyArray<Field> => {
  const whole = resolve(form)
  const others = whole.anyOf?.map(resolve) ?? [whole]
  const orNull = others.some(({ type }) => type === "null") ? " or null" : ""
  const alternatives = others.filter(({ type }) => type !== "null")
  return alternatives.flatMap((one): ReadonlyArray<Field> => {
    if (one.properties !== undefined) {
      const inner = Object.entries(one.properties).flatMap(([name, field]) =>
        fieldsOf(field, resolve, path === "" ? name : `${path}.${name}`)
      )
      return path === "" ? inner : [[path, `object${orNull}`], ...inner]
    }
    if (one.items !== undefined) return [[path, `list${orNull}`], ...fieldsOf(one.items, resolve, `${path}[]`)]
    const values = one.enum?.map((value) => `\`${String(value)}\``).join(", ")
    return [[path, `${values ?? one.type ?? "any JSON"}${orNull}`]]
  })
}

const rowsOf = (schema: Schema.Codec<unknown, unknown>) => {
  const { definitions, schema: form } = decodeDocument(Schema.toJsonSchemaDocument(Schema.toCodecJson(schema)))
  const resolve = (one: Form): Form => {
    const target = one.$ref === undefined ? undefined : definitions[one.$ref.replace("#/$defs/", "")]
    return target === undefined ? one : resolve(target)
  }
  return fieldsOf(form, resolve, "").map(([path, what]) => `| \`${path}\` | ${what} |`)
}

const documentOf = (personal: Schema.Codec<unknown, unknown>) => `
| field of its personal document | form |
|---|---|
${[...rowsOf(personal), "| `salt` | string |"].join("\n")}
`

const section = (eventType: (typeof Catalogue.eventTypes)[number]) => {
  const { schema, schemaVersion, type } = eventType
  const fixture = join(import.meta.dirname, `fixtures/${type}.${schemaVersion}.json`)
  const [example] = decodeExamples(readFileSync(fixture, "utf8"))
  return `## ${type}

${meanings.get(type) ?? ""}

Version ${schemaVersion}.

| field of \`data\` | form |
|---|---|
${rowsOf(schema).join("\n")}
${"personal" in eventType ? documentOf(eventType.personal) : ""}
\`\`\`json
${JSON.stringify(example, null, 2)}
\`\`\`
`
}

const introduction = `# Every event

All event types of the log. This page is generated from the code (\`npm run test:only -- test/events/CatalogueDocument.test.ts -u\`), and a test compares the two.

An event has an envelope with the same fields for all types (\`GET /v1/audit/events\` in [openapi.json](../openapi.json)), \`metadata\` (actor and reason:
[audit.md](audit.md#who-and-why)) and \`data\`, whose schema follows from \`type\` and \`schema_version\`. A released version never changes.
Times are RFC 3339 text in UTC; ids of accounts, keys and auditors are UUIDs; digests are SHA-256 in hexadecimal. \`personal_sha256\` is the digest of the
[personal document](audit.md#how-personal-data-is-bound-to-the-log) beside the event.
`

it("docs/events.md lists every event with its fields (to write it: npm run test:only -- test/events/CatalogueDocument.test.ts -u)", () => {
  expect(Catalogue.eventTypes.filter(({ type }) => (meanings.get(type) ?? "") === "").map(({ type }) => type)).toStrictEqual([])
  const sections = Catalogue.eventTypes.toSorted((one, other) => (one.type < other.type ? -1 : 1)).map(section)
  return expect([introduction, ...sections].join("\n")).toMatchFileSnapshot(file)
})
