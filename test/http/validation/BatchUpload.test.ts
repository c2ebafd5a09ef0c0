import { Effect, Stream } from "effect"
import { describe } from "vitest"
import { itemsOf, type UploadFormat } from "#http/validation/BatchUpload.ts"
import { assert, it } from "#test/support/Test.ts"

/** Reads the items of a body that arrives in parts of `partSize` bytes. */
const read = (format: UploadFormat, body: string, partSize: number) => {
  const bytes = new TextEncoder().encode(body)
  const parts = Array.from({ length: Math.ceil(bytes.length / partSize) }, (_, part) =>
    bytes.slice(part * partSize, (part + 1) * partSize)
  )
  return Effect.map(Stream.runCollect(itemsOf(format, Stream.fromIterable(parts))), (items) =>
    items.flat().map(({ customId, input }) => [customId, input])
  )
}

const items = [
  ['ä}"{\\ "', "DE123456789"],
  ["[2],", " at u12345678 "],
  ["3", ""]
]
const objects = items.map(([custom_id, vat_id]) => ({ custom_id, vat_id }))
const quoted = items.map((cells) => cells.map((cell = "") => `"${cell.replaceAll('"', '""')}"`).join(";"))

describe("an uploaded batch", () => {
  it.effect.each([
    ["json", JSON.stringify({ items: objects })],
    ["json", `\u{feff}${JSON.stringify({ items: objects }, null, 2)}\r\n`],
    ["ndjson", `${objects.map((object) => JSON.stringify(object)).join("\r\n")}`],
    ["csv", `Custom_ID;vat_id\n\n${quoted.join("\n")}\n`]
  ] as const)("as %s is decoded to the same items, whatever the size of the received parts", function* ([format, body]) {
    for (const partSize of [1, 2, 3, 7, 64, 4096]) assert.deepStrictEqual(yield* read(format, body, partSize), items)
  })

  it.effect.each([
    ["json", '{"items":[{"custom_id":"a\n","vat_id":""}]}', 2, "Invalid JSON"],
    ["json", '{"items":[]}', null, "A batch must have at least one item"],
    ["json", '{"items":[{"custom_id":"a","vat_id":""}]}\n}', 2, 'The body must be {"items"'],
    ["json", '{"items":[\n{"custom_id":"a","vat_id":"","more":1}]}', 2, "Item 1: "],
    ["json", `{"items":[{"custom_id":"${"a".repeat(3_000)}`, 1, "The item has more than the maximum of 2048 bytes"],
    ["json", `{"items":[{\n${" \n".repeat(3_000)}`, 1_025, "The item has more than the maximum of 2048 bytes"],
    ["json", `{"items":[{"custom_id":{}\n${" \n".repeat(3_000)}`, 1_018, 'The body must be {"items"'],
    ["ndjson", '{"custom_id":"a","vat_id":""}\n[]', 2, "Item 2: "],
    ["ndjson", " ".repeat(3_000), 1, "The line has more than the maximum of 1024 bytes"],
    ["csv", "vat_id,custom_id\n1,2,3", 2, "The line has 3 cells; expected 2"],
    ["csv", 'vat_id,custom_id\n1,"2"3', 2, "A cell must end at its closing quotation mark"],
    ["csv", "a,b\n1,2", 1, "The first line must name the columns"]
  ] as const)(
    "as invalid %s is rejected, and the error has the number of the invalid line, if any",
    function* ([format, body, line, problem]) {
      for (const partSize of [3, 65_536]) {
        const error = yield* Effect.flip(read(format, body, partSize))
        assert.strictEqual(error._tag === "InvalidUpload" ? error.line : undefined, line, String(error))
        assert.include(error.message, problem)
      }
    }
  )

  it.effect("is rejected if it has more than 50,000 items or 500,000 lines", function* () {
    const item = '{"custom_id":"a","vat_id":""}\n'
    assert.lengthOf(yield* read("ndjson", item.repeat(50_000), 65_536), 50_000)
    for (const [body, line] of [
      [item.repeat(50_001), 50_001],
      ["\n".repeat(500_001), 500_001]
    ] as const) {
      assert.containSubset(yield* Effect.flip(read("ndjson", body, 65_536)), { _tag: "InvalidUpload", line })
    }
  })
})
