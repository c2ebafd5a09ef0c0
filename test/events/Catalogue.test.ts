/**
 * Stored events stay readable forever. `fixtures/<Type>.<version>.json` has the stored data of an event of one version. A new type or
 * version adds a file. The file of a released version never changes.
 */
import { Effect, Result, Schema } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as Catalogue from "#events/Catalogue.ts"
import * as CanonicalJson from "#events/log/merkle/CanonicalJson.ts"
import { assert, describe, it } from "#test/support/Test.ts"

const folder = join(import.meta.dirname, "fixtures")
const fixtures = readdirSync(folder)
  .map((file) => file.replace(/\.json$/u, ""))
  .toSorted()

const decodeExamples = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.NonEmptyArray(Schema.Json)))
const examplesOf = (name: string) => decodeExamples(readFileSync(join(folder, `${name}.json`), "utf8"))

const canonical = (value: Schema.Json) => Result.getOrThrow(CanonicalJson.encode(value))

const nameOf = ({ schemaVersion, type }: { readonly type: string; readonly schemaVersion: number }) => `${type}.${schemaVersion}`

describe("the catalogue of events", () => {
  it("has exactly one fixture for each version of each event type", () => {
    assert.deepStrictEqual(fixtures, Catalogue.eventTypes.map(nameOf).toSorted())
  })

  it("contains each version of an event type once", () => {
    assert.strictEqual(new Set(Catalogue.eventTypes.map(nameOf)).size, Catalogue.eventTypes.length)
  })

  for (const eventType of Catalogue.eventTypes) {
    const name = nameOf(eventType)
    if (!fixtures.includes(name)) continue

    it.effect(`decodes the stored fixture ${name}, and encodes it to the same text`, function* () {
      for (const example of examplesOf(name)) {
        const stored = canonical(example)
        assert.strictEqual(canonical(yield* storedAgain(eventType.schema, stored)), stored)
      }
    })
  }
})

/** Decodes the data of a stored event and encodes it again, with the current schema. */
const storedAgain = Effect.fnUntraced(function* (schema: Schema.Codec<unknown, unknown>, stored: string) {
  const codec = Schema.toCodecJson(schema)
  const value = yield* Schema.decodeUnknownEffect(Schema.fromJsonString(codec))(stored)
  return yield* Schema.encodeUnknownEffect(codec)(value)
})
