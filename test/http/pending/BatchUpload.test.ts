import { Array as Arr, Effect, Schema, Stream } from "effect"
import { Csv } from "effect/encoding"
import { describe } from "vitest"
import { makeItemsOf, type UploadFormat } from "#http/pending/BatchUpload.ts"
import { assert, it } from "#test/support/Test.ts"

/** Reads the items of a body that arrives in parts of `partSize` bytes. */
const readAll = Effect.fnUntraced(function* (format: UploadFormat, body: string, partSize: number) {
  const itemsOf = yield* makeItemsOf
  const bytes = new TextEncoder().encode(body)
  const parts = Array.from({ length: Math.ceil(bytes.length / partSize) }, (_, part) =>
    bytes.slice(part * partSize, (part + 1) * partSize)
  )
  return (yield* Stream.runCollect(itemsOf(format, Stream.fromIterable(parts)))).flat()
})
const read = (format: UploadFormat, body: string, partSize: number) =>
  Effect.map(readAll(format, body, partSize), (items) => items.map(({ customId, input }) => [customId, input]))

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
    ["json", '{"items":[{"custom_id":"a\n","vat_id":""}]}', 1, "Invalid JSON"],
    ["json", '{"items":[]}', null, "A batch must have at least one item"],
    ["json", '{"items":[{"custom_id":"a","vat_id":""},]}', 1, 'The body must be {"items"'],
    ["json", '{"items":[{"custom_id":"a","vat_id":""} {"custom_id":"b","vat_id":""}]}', 1, 'The body must be {"items"'],
    ["json", '{"items":[{"custom_id":"a","vat_id":""}]}\n}', 1, 'The body must be {"items"'],
    ["json", '{"items":[{"custom_id":"a","vat_id":""}],"more":{}}', 1, 'The body must be {"items"'],
    ["json", '{"items":[\n{"custom_id":"a","vat_id":"","more":1}]}', 2, "Item 1: "],
    [
      "json",
      '{"items":[\n{"custom_id":"a","vat_id":""},\n\n{"custom_id":"a",\n"vat_id":""}]}',
      4,
      "Item 2: the item on line 2 has the same"
    ],
    ["json", `{"items":[{"custom_id":"${"a".repeat(3_000)}`, 1, "The item has more than the maximum of 2048 bytes"],
    ["json", `{"items":[{\n${" \n".repeat(3_000)}`, 1, "The item has more than the maximum of 2048 bytes"],
    ["json", '{"items":[{"custom_id":{},"vat_id":""}]}', 1, "Invalid JSON, or an object in an item"],
    ["ndjson", '{"custom_id":"a","vat_id":""}\n[]', 2, "Item 2: "],
    [
      "ndjson",
      '{"custom_id":"a","vat_id":""}\n\n{"custom_id":"a","vat_id":"b"}',
      3,
      "Item 2: the item on line 1 has the same custom_id"
    ],
    ["ndjson", " ".repeat(3_000), 1, "The item has more than the maximum of 2048 bytes"],
    ["csv", "vat_id,custom_id\n1,2,3", 2, "The row has 3 cells; expected 2"],
    ["csv", 'vat_id,custom_id\n1,"2"3', 2, "A cell must end at its closing quotation mark"],
    ["csv", 'vat_id,custom_id\n1,"2', 2, "A quoted cell must end with a quotation mark"],
    ["csv", 'vat_id,custom_id,n\n1,2,"\n\n"\n3,2,', 5, "Item 2: the item on line 2 has the same custom_id"],
    ["csv", "a,b\n1,2", 1, "The first row must name the columns"],
    ["csv", "custom_id,vat_id,vat_id\n1,2,3", 1, "The first row must name the columns"]
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

  it.effect("as CSV keeps the cells of additional columns, with line breaks in quoted cells", function* () {
    const body = 'city,custom_id,"ordered\r\non",vat_id\r\n"Köln\n""Süd""",1,=A1,DE123456789\r\n,2,,FR12345678901'
    for (const partSize of [1, 7, 4096]) {
      assert.deepStrictEqual(yield* readAll("csv", body, partSize), [
        { customId: "1", input: "DE123456789", additional: ['Köln\n"Süd"', "=A1"], columns: ["city", "ordered\r\non"] },
        { customId: "2", input: "FR12345678901", additional: ["", ""] }
      ])
    }
  })

  const Cell = Schema.String.check(Schema.isMaxLength(20), Schema.isPattern(/^[^\0\p{Cs}]*$/u))
  it.effect.prop(
    "as CSV has the cells that an encoder of RFC 4180 wrote",
    [Schema.Array(Schema.Tuple([Cell, Cell]))],
    Effect.fnUntraced(function* ([cells]) {
      const rows = cells.map((others, index) => [`${index}`, "", ...others])
      const parts = Stream.make(["custom_id", "vat_id", "c", "d"], ...rows).pipe(Stream.pipeThroughChannel(Csv.encodeString()))
      const body = (yield* Stream.runCollect(parts)).join("")
      const result = cells.length === 0 ? [] : yield* readAll("csv", body, 5)
      assert.deepStrictEqual(
        result.map(({ additional = [] }) => [...additional]),
        cells.map((others) => [...others])
      )
    })
  )

  it.effect("is rejected if it has more than 50,000 items or 500,000 lines", function* () {
    const bodyOf = (count: number) => Array.from({ length: count }, (_, item) => `{"custom_id":"${item}","vat_id":""}\n`).join("")
    assert.lengthOf(yield* read("ndjson", bodyOf(50_000), 65_536), 50_000)
    for (const [body, line] of [
      [bodyOf(50_001), 50_001],
      ["\n".repeat(500_001), 500_001]
    ] as const) {
      assert.containSubset(yield* Effect.flip(read("ndjson", body, 65_536)), { _tag: "InvalidUpload", line })
    }
  })
})

/** The size of each body of the test below, and of the items in it. */
const [bodySize, itemSize] = [100_000, 1_900]
/** Returns a body of items that a function makes of the number of the item. */
const bodyOf = (first: string, item: (number: number) => string, between: string, last = "") =>
  first + Arr.makeBy(Math.ceil(bodySize / item(0).length), item).join(between) + last
const object = (number: number, more = "") => `{"custom_id":"${number}",${more}"vat_id":""}`
const ordinary = {
  json: bodyOf('{"items":[', object, ",", "]}"),
  ndjson: bodyOf("", object, "\n"),
  csv: bodyOf("custom_id,vat_id\n", (number) => `customer-${number},ATU10550001`, "\n")
}
const quotes = '""'.repeat(itemSize / 2)

/** Returns the processor time of reading a body: the least of three measurements. */
const costOf = Effect.fnUntraced(function* (format: UploadFormat, body: string, partSize: number) {
  const costs: Array<number> = []
  for (let round = 0; round < 3; round += 1) {
    const before = process.cpuUsage()
    yield* Effect.exit(readAll(format, body, partSize))
    const { system, user } = process.cpuUsage(before)
    costs.push(user + system)
  }
  return Math.min(...costs)
})

describe("the processor time of an upload", () => {
  it.live.each([
    ["json", "line breaks in items", bodyOf('{"items":[', (number) => object(number, "\n".repeat(itemSize)), ",", "]}")],
    ["json", "blanks between items", bodyOf('{"items":[', (number) => " ".repeat(itemSize) + object(number), ",", "]}")],
    ["json", "escapes", bodyOf('{"items":[', (number) => object(number, `"a":"${"\\\\".repeat(itemSize / 2)}",`), ",", "]}")],
    ["json", "nesting", `{"items":[${"[".repeat(bodySize)}`],
    ["json", "line breaks before the items", `{"items":[${"\n".repeat(bodySize)}`],
    ["ndjson", "blanks in items", bodyOf("", (number) => object(number, " ".repeat(itemSize)), "\n")],
    ["ndjson", "empty lines", "\n".repeat(bodySize)],
    ["ndjson", "nesting", "[".repeat(bodySize)],
    ["csv", "line breaks in cells", bodyOf("custom_id,vat_id,a\n", (number) => `${number},,"${"\n".repeat(itemSize)}"`, "\n")],
    ["csv", "quotation marks in cells", bodyOf("custom_id,vat_id,a\n", (number) => `${number},,"${quotes}"`, "\n")],
    [
      "csv",
      "many cells",
      bodyOf(`custom_id,vat_id${",".repeat(itemSize)}\n`, (number) => `${number},${",".repeat(itemSize)}`, "\n")
    ],
    ["csv", "an open quotation mark", `custom_id,vat_id\n"${"\n".repeat(bodySize)}`]
  ] as const)("as %s with %s is not more than five times that of ordinary items in as many bytes", function* ([format, , body]) {
    for (const partSize of [97, 65_536]) {
      const expected = yield* costOf(format, ordinary[format], partSize)
      const actual = yield* costOf(format, body, partSize)
      assert.isBelow(actual, 5 * expected, `parts of ${partSize} bytes`)
    }
  })
})
