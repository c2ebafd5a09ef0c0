import { Array as Arr, Effect, Fiber, Layer, Result, Schedule, Schema } from "effect"
import { getDocumentProxy } from "unpdf"
import { type ReceiptDocument, receiptDocument } from "#domain/receipts/document/ReceiptDocument.ts"
import { ReceiptPdf } from "#domain/receipts/document/ReceiptPdf.ts"
import { receiptLanguages } from "#domain/receipts/document/ReceiptText.ts"
import * as Pdf from "#infra/pdf/PdfRenderer.ts"
import { type Differences, receiptRecord } from "#test/support/ReceiptRecords.ts"
import { assert, layer } from "#test/support/Test.ts"

const documentOf = (differences: Differences = {}, language: "en" | "de" = "de") =>
  receiptDocument(receiptRecord(differences), language)

const render = (document: ReceiptDocument, keyId = "a key") => Effect.flatMap(ReceiptPdf, (pdf) => pdf.render(keyId, document))

const Items = Schema.Struct({ items: Schema.Array(Schema.Struct({ str: Schema.String, hasEOL: Schema.Boolean })) })
const Info = Schema.Struct({ info: Schema.Record(Schema.String, Schema.Unknown) })

/** Reads a PDF file. Removes white space from the text of each page, because a line can break anywhere. */
const read = Effect.fnUntraced(function* (bytes: Uint8Array) {
  const pdf = yield* Effect.promise(() => getDocumentProxy(bytes.slice()))
  const texts = yield* Effect.forEach(
    Array.from({ length: pdf.numPages }, (_, index) => index + 1),
    Effect.fnUntraced(function* (number) {
      const page = yield* Effect.promise(() => pdf.getPage(number))
      const { items } = yield* Schema.decodeUnknownEffect(Items)(yield* Effect.promise(() => page.getTextContent()))
      return items.map(({ hasEOL, str }) => (hasEOL ? `${str}\n` : str)).join("")
    })
  )
  const pages = texts.map((text) => text.replace(/\s/gu, ""))
  const { info } = yield* Schema.decodeUnknownEffect(Info)(yield* Effect.promise(() => pdf.getMetadata()))
  const names = yield* Effect.promise(() => pdf.getAttachments())
  const attached = yield* Effect.forEach([...(names ?? new Map<string, unknown>()).keys()], (name) =>
    Effect.map(
      Effect.promise(() => pdf.getAttachmentContent(name)),
      (content) => [name, content === undefined ? null : new TextDecoder().decode(content)] as const
    )
  )
  return { pages, lines: texts.flatMap((text) => text.split("\n")), text: pages.join(""), info, attached: new Map(attached) }
})

/** Returns every text of the document. The PDF must contain each of them. */
const textsOf = ({ compared, headline, lead, law, sections, title }: ReceiptDocument): ReadonlyArray<string> => [
  title,
  law,
  headline,
  compared,
  ...lead,
  ...sections.flatMap(({ blocks, heading }) => [
    heading,
    ...blocks.flatMap((block) => {
      switch (block._tag) {
        case "Paragraph":
          return [block.text]
        case "Facts":
          return block.facts.flatMap(({ label, value }) => [label, value])
        case "Comparison":
          return [...block.columns, ...block.rows.flatMap(({ field, result, supplied }) => [field, supplied, result])]
        case "Points":
          return block.points
        case "Steps":
          return block.steps.flatMap(({ command, text }) => (command === null ? [text] : [text, command]))
        case "Exact":
          return [block.label, block.text]
        case "Attachments":
          return [block.label]
      }
    })
  ])
]

const closeLetters = (text: string) => text.replace(/\s/gu, "")

layer(Pdf.layer, { excludeTestServices: true })("the PDF of a receipt", (it) => {
  it.effect.each(receiptLanguages)(
    "contains all text of the document, with umlauts, Greek and Cyrillic (%s)",
    function* (language) {
      const document = documentOf(
        {
          input: { company_city: "гр. СОФИЯ, Łódź, Ķekava, Ñ, ő, ș, Ελλάδα ΐΰ ᾧ" },
          record: { bzstStatus: "evatr-2006", validFrom: "2010-01-01", validUntil: "2020-12-31" }
        },
        language
      )
      const { text } = yield* read(yield* render(document))
      for (const expected of textsOf(document)) assert.include(text, closeLetters(expected))
    }
  )

  it.effect.each(receiptLanguages)(
    "prints each line of a command without a line break, even with the longest receipt id (%s)",
    function* (language) {
      const document = documentOf({ receiptId: "ABCDEFGHIJ-QC-20261121-A7K2M9P4R3" }, language)
      const { lines } = yield* read(yield* render(document))
      const commands = document.sections.flatMap(({ blocks }) =>
        blocks.flatMap((block) => (block._tag === "Steps" ? block.steps.flatMap(({ command }) => command ?? []) : []))
      )
      assert.strictEqual(commands.length, 3)
      for (const line of commands.flatMap((command) => command.split("\n"))) {
        assert.include(
          lines.map((found) => found.trim()),
          line.trim()
        )
      }
    }
  )

  it.effect.each(receiptLanguages)("has the mark of a simulated receipt across each page (%s)", function* (language) {
    const document = documentOf({ isSandbox: true }, language)
    const { attached, pages } = yield* read(yield* render(document))
    assert.isAbove(pages.length, 1)
    for (const page of pages) assert.include(page, closeLetters(document.mark?.title ?? "no mark"))
    assert.include(attached.get("VP-QC-20261121-A7K2M9P4R3.json") ?? "", '"sandbox":true')
    assert.notInclude((yield* read(yield* render(documentOf({}, language)))).text, "SANDBOX")
  })

  it.effect("has the same bytes in every thread and after any earlier renderings, and has searchable text", function* () {
    const names = ["García Hnos", "Yıldız Bau", "Άλφα Όμικρον", "ΑΘΗΝΑ ΟΕ", "µ μ Ω Ω"]
    const documents = names.map((company_name) =>
      documentOf({ input: { company_name }, result: { official_name: company_name } })
    )
    const afterOthers = yield* Effect.forEach(documents, (document) => render(document))
    for (const [index, bytes] of afterOthers.entries()) {
      assert.include((yield* read(bytes)).text.normalize("NFKC"), closeLetters(names[index] ?? "").normalize("NFKC"))
    }
    const again = Effect.forEach(documents.slice(1, 2), (document) => render(document))
    assert.deepStrictEqual(yield* again, afterOthers.slice(1, 2))
    assert.deepStrictEqual(yield* Effect.provide(again, Layer.fresh(Pdf.layer)), afterOthers.slice(1, 2))
  })

  it.effect("has the receipt's title, language and dates, and the exact request and response as attachments", function* () {
    const document = documentOf({ request: '{"firmenname":"Ümläut ΑΒΓ ПРИМЕР 😀 \u202E"}' })
    const { attached, info } = yield* read(yield* render(document))
    assert.containSubset(info, {
      PDFFormatVersion: "1.7",
      Language: "de",
      Title: "Beleg über eine qualifizierte Bestätigungsanfrage: VP-QC-20261121-A7K2M9P4R3",
      Author: "vatproof-issued",
      CreationDate: "D:20261121013304Z",
      ModDate: "D:20261121013304Z"
    })
    assert.deepStrictEqual(attached, new Map(document.attachments.map(({ name, text }) => [name, text])))
  })

  it.effect("wraps long text, even without spaces, over as many pages as needed", function* () {
    const company_name = "Außergewöhnlich".repeat(20)
    const { pages, text } = yield* read(
      yield* render(documentOf({ input: { company_name }, response: `{"x":"${"y".repeat(11_000)}"}` }))
    )
    assert.isAbove(pages.length, 3)
    assert.include(text, company_name)
    pages.forEach((page, index) => assert.include(page, `Seite${index + 1}von${pages.length}`))
  })

  it.effect("escapes characters that its fonts lack", function* () {
    const { text } = yield* read(yield* render(documentOf({ input: { company_name: "日本 😀 GmbH" } })))
    assert.include(text, "[U+65E5][U+672C][U+1F600]GmbH")
  })

  it.effect("is rendered even if the texts contain line breaks, right-to-left script or PDF syntax", function* () {
    for (const [company_name, company_street, company_zip, company_city] of [
      ["\n\n\n", "\t", " ", "ﬁﬂ ffi"],
      ["e\u0301\u0301\u0301", "ـا لعربية עברית", "\uFFFD\uFFFF", "-".repeat(300)],
      ["\u00A0".repeat(300), "()\\%", "<<>>", "/Name"]
    ] as const) {
      const bytes = yield* render(documentOf({ input: { company_name, company_street, company_zip, company_city } }))
      assert.strictEqual(new TextDecoder().decode(bytes.slice(0, 5)), "%PDF-", company_name)
    }
  })

  it.effect(
    "is rendered for a limited number of concurrent requests, in total and per key; further requests get a Retry-After",
    function* () {
      const keys = ["a", "a", "a", "a", "b", "b", "b", "c", "c", "c", "d", "e"]
      const renderings = yield* Effect.forEach(keys, (key) =>
        Effect.forkChild(Effect.flip(render(documentOf(), key)), { startImmediately: true })
      )
      const [rejected, admitted] = Arr.partition(renderings, (fiber, index) =>
        index === 3 || index === 11 ? Result.succeed(fiber) : Result.fail(fiber)
      )
      const failures = yield* Effect.forEach(rejected, Fiber.join)
      assert.deepStrictEqual(
        failures.map(({ _tag, retryAfterSeconds }) => [_tag, retryAfterSeconds]),
        [
          ["RateLimitExceeded", 5],
          ["PdfUnavailable", 5]
        ]
      )
      assert.isTrue(admitted.every((fiber) => fiber.pollUnsafe() === undefined))
      yield* Fiber.interruptAll(admitted)
      const next = yield* Effect.retry(render(documentOf()), Schedule.spaced("10 millis"))
      assert.isAbove(next.byteLength, 10_000)
    }
  )

  it.effect("is rendered even if earlier callers disconnected while their PDFs were being rendered", function* () {
    const impatient = yield* Effect.forEach([1, 2, 3], () =>
      Effect.forkChild(render(documentOf(), "impatient"), { startImmediately: true })
    )
    const other = yield* Effect.forkChild(render(documentOf(), "other"), { startImmediately: true })
    yield* Effect.forEach(impatient, Fiber.interrupt)
    assert.isAbove((yield* Fiber.join(other)).byteLength, 10_000)
    assert.isAbove((yield* render(documentOf(), "impatient")).byteLength, 10_000)
  })
})
