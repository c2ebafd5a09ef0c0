import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { type Block, type ReceiptDocument, receiptDocument } from "#domain/receipts/document/ReceiptDocument.ts"
import { receiptLanguages } from "#domain/receipts/document/ReceiptText.ts"
import { VerdictStatus } from "#infra/sources/EvatrStatus.ts"
import { type Differences, receiptRecord } from "#test/support/ReceiptRecords.ts"

const blocksOf = (document: ReceiptDocument): ReadonlyArray<Block> => document.sections.flatMap(({ blocks }) => blocks)

/** Returns all visible text of the document. */
const readable = (document: ReceiptDocument): string => JSON.stringify({ ...document, attachments: [] })

/** Returns the structure of the document without its texts. */
const shapeOf = (document: ReceiptDocument) =>
  document.sections.map(({ blocks }) =>
    blocks.map((block) => {
      switch (block._tag) {
        case "Facts":
          return [block._tag, block.facts.map(({ kind }) => kind)]
        case "Comparison":
          return [block._tag, block.rows.map(({ word }) => word)]
        case "Points":
          return [block._tag, block.points.length]
        case "Steps":
          return [block._tag, block.steps.map(({ command }) => command)]
        default:
          return [block._tag]
      }
    })
  )

const factsOf = (differences: Differences, language: "en" | "de" = "en") =>
  Object.fromEntries(
    blocksOf(receiptDocument(receiptRecord(differences), language))
      .flatMap((block) => (block._tag === "Facts" ? block.facts : []))
      .map(({ label, value }) => [label, value])
  )

describe("a receipt as a document", () => {
  it("shows the client's reference if the request had one", () => {
    assert.strictEqual(factsOf({ reference: "INV\u202E4711" })["Reference of the requester"], "INV[U+202E]4711")
    assert.strictEqual(factsOf({ reference: "INV-4711" }, "de")["Referenz des Anfragenden"], "INV-4711")
    assert.notProperty(factsOf({}), "Reference of the requester")
  })

  it("has the same content in both languages, in the same order", () => {
    const [english, german] = receiptLanguages.map((language) => shapeOf(receiptDocument(receiptRecord(), language)))
    assert.deepStrictEqual(english, german)
  })

  it.each(receiptLanguages)("shows every stored fact in the language %s", (language) => {
    const record = receiptRecord({ record: { validFrom: "2010-01-31", validUntil: "2020-12-01" } })
    const text = readable(receiptDocument(record, language))
    const { input, result, ...receipt } = record.receipt
    for (const fact of [
      receipt.receipt_id,
      receipt.target_vat_id,
      receipt.requester_vat_id,
      receipt.bzst_request_id,
      receipt.source,
      input.company_name,
      input.company_street,
      input.company_zip,
      result.official_name,
      "ΕΡΜΟΥ 1\\n10563 ΑΘΗΝΑ",
      record.bzstStatus,
      String(record.position),
      String(record.evidence.httpStatus),
      record.evidence.responseSha256,
      JSON.stringify(record.evidence.request).slice(1, -1),
      JSON.stringify(record.evidence.response).slice(1, -1),
      record.eventId,
      record.accountId,
      record.keyId,
      "152 ms"
    ]) {
      assert.include(text, String(fact))
    }
    // Times have all their digits, and dates are in words.
    for (const digits of ["01:33:04.702", "01:33:04.564", "01:33:04.412", "01:33:04.709913"]) {
      assert.include(text, language === "de" ? digits.replace(".", ",") : digits)
    }
    assert.include(text, language === "de" ? "31.\u00A0Januar 2010" : "31\u00A0January 2010")
    assert.include(text, language === "de" ? "1.\u00A0Dezember 2020" : "1\u00A0December 2020")
  })

  it.each(VerdictStatus.literals)("explains the status %s in both languages", (bzstStatus) => {
    const meanings = receiptLanguages.map((language) => {
      const facts = factsOf({ record: { bzstStatus } }, language)
      return facts[language === "de" ? "Bedeutung des Status" : "Meaning of the status"] ?? ""
    })
    assert.isTrue(meanings.every((meaning) => /^\p{Lu}.*\.$/u.test(meaning)))
    assert.notStrictEqual(meanings[0], meanings[1])
  })

  it("says when the VAT ID was or will be valid", () => {
    const over = { bzstStatus: "evatr-2006", validFrom: "2010-01-01", validUntil: "2020-12-31" }
    const facts = factsOf({ record: over })
    assert.strictEqual(
      facts["Meaning of the status"],
      "The VAT ID is no longer valid: it was valid from 1\u00A0January 2010 to 31\u00A0December 2020."
    )
    assert.containSubset(facts, { "Valid from": "1\u00A0January 2010", "Valid until": "31\u00A0December 2020" })
    const soon = factsOf({ record: { bzstStatus: "evatr-2002", validFrom: "2099-01-01" } })
    assert.strictEqual(soon["Meaning of the status"], "The VAT ID is not valid yet: it becomes valid on 1\u00A0January 2099.")
    assert.notProperty(soon, "Valid until")
    assert.notProperty(factsOf({}), "Valid from")
  })

  it("has different words for values that are absent, not disclosed or not supplied", () => {
    const facts = factsOf({ requestId: null, result: { official_name: "", official_address: "" } })
    assert.strictEqual(facts["Request id of the BZSt"], "none")
    assert.match(facts["Name"] ?? "", /^unknown/u)
    const [comparison] = blocksOf(receiptDocument(receiptRecord(), "en")).flatMap((block) =>
      block._tag === "Comparison" ? [block] : []
    )
    assert.deepStrictEqual(
      comparison?.rows.map(({ result, supplied }) => [supplied, result]),
      [
        ["Süddeutsche Präzisionswerkzeug- und Überwachungsgerätebau GmbH & Co. KG", "match"],
        ["Große Öffnungsstraße 12 a–c", "mismatch"],
        ["80331", "not provided"],
        ["not supplied", "not queried"]
      ]
    )
  })

  it("says that the VAT ID is valid even if company data does not match or was not compared", () => {
    const compared = (differences: Differences, language: "en" | "de" = "en") => {
      const { compared, tone } = receiptDocument(receiptRecord(differences), language)
      return [tone, compared]
    }
    const match = { name_match: "match", street_match: "match", zip_match: "match", city_match: "match" } as const
    const one = { company_street: "", company_zip: "", company_city: "" }
    const city = { company_city: "München" }
    const off = { ...match, street_match: "mismatch", zip_match: "mismatch" } as const
    assert.deepStrictEqual(compared({ input: city, result: match }), [
      "good",
      "Company data: 4 of 4 supplied fields match the register."
    ])
    assert.deepStrictEqual(compared({ input: city, result: off }), [
      "mixed",
      "Company data: 2 of 4 supplied fields do not match the register."
    ])
    assert.deepStrictEqual(compared({ input: city, result: off }, "de"), [
      "mixed",
      "Firmendaten: 2 von 4 Angaben stimmen nicht mit dem Register überein."
    ])
    assert.deepStrictEqual(compared({}), [
      "mixed",
      "Company data: 1 of 3 supplied fields does not match the register, 1 of 3 supplied fields was not compared."
    ])
    assert.deepStrictEqual(compared({}, "de"), [
      "mixed",
      "Firmendaten: 1 von 3 Angaben stimmt nicht mit dem Register überein, 1 von 3 Angaben wurde nicht verglichen."
    ])
    assert.deepStrictEqual(compared({ input: one }), ["good", "Company data: the supplied field matches the register."])
    assert.deepStrictEqual(compared({ input: one, result: { name_match: "not_provided" } }), [
      "mixed",
      "Company data: the supplied field was not compared."
    ])
    assert.strictEqual(compared({ input: city, result: { ...match, valid: false } })[0], "bad")
    assert.deepStrictEqual(compared({ input: { ...one, company_name: "" } }), ["good", "Company data: none was supplied."])
  })

  it("escapes invisible characters, and characters that change the text direction", () => {
    const document = receiptDocument(
      receiptRecord({ input: { company_name: "a\u202Egpj.exe\u0000b\u00ADc\u2028d\u{E0001}e" } }),
      "en"
    )
    assert.include(readable(document), "a[U+202E]gpj.exe[U+0000]b[U+00AD]c[U+2028]d[U+E0001]e")
    assert.notMatch(readable(document), /\u202E|\u00AD/u)
  })

  it("prints the start of a very long response, and attaches it completely", () => {
    const response = `{"x":"${"😀".repeat(100_000)}"}`
    const document = receiptDocument(receiptRecord({ response }), "de")
    const printed = blocksOf(document).flatMap((block) => (block._tag === "Exact" ? [block.text] : []))
    assert.isTrue(printed.every((text) => text.length < 13_000 && text.isWellFormed()))
    assert.match(printed[1] ?? "", /… und 188008 weitere Zeichen/u)
    assert.strictEqual(document.attachments[2]?.text, response)
  })

  it("attaches the receipt as the API returns it, and the exact bytes of request and response", () => {
    const record = receiptRecord()
    const { attachments } = receiptDocument(record, "en")
    const read = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Json))
    assert.containSubset(read(attachments[0]?.text ?? ""), {
      receipt_id: record.receipt.receipt_id,
      issued_at: "2026-11-21T01:33:04.702Z"
    })
    assert.deepStrictEqual(attachments.map(({ name, text }) => [name, text]).slice(1), [
      ["VP-QC-20261121-A7K2M9P4R3-question.json", record.evidence.request],
      ["VP-QC-20261121-A7K2M9P4R3-answer.json", record.evidence.response]
    ])
  })

  it("can be sent to another thread, because it is plain data", () => {
    const document = receiptDocument(receiptRecord(), "de")
    assert.deepStrictEqual(structuredClone(document), document)
  })
})
