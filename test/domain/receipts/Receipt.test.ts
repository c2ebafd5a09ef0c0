import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, DateTime, Schema, Struct } from "effect"
import { referenceIn } from "#domain/vat/Verdict.ts"
import {
  inputOf,
  letterOf,
  MatchLetter,
  MatchWord,
  Receipt,
  ReceiptIssued,
  receiptList,
  summaryOf,
  wholeReceipt,
  wordOf
} from "#domain/receipts/Receipt.ts"
import { receiptRecord } from "#test/support/ReceiptRecords.ts"

const noon = DateTime.makeUnsafe("2026-11-20T12:00:00Z")

describe("the result of comparing a company field", () => {
  it("is a word of its own for each of the letters A to D that the BZSt returns", () => {
    const expected = { A: "match", B: "mismatch", C: "not_queried", D: "not_provided" } as const
    for (const letter of MatchLetter.literals) {
      assert.strictEqual(wordOf(letter, "supplied"), expected[letter])
      assert.strictEqual(letterOf(wordOf(letter, "supplied")), letter)
    }
    assert.sameMembers(MatchWord.literals.map(letterOf), [...MatchLetter.literals])
  })

  it("is not_provided for a supplied field to which the BZSt returns no letter, and not_queried for a field that was not supplied", () => {
    assert.strictEqual(wordOf(null, "Berlin"), "not_provided")
    assert.strictEqual(wordOf(null, null), "not_queried")
  })

  it("is not_queried for a field that was not supplied, even if the BZSt returns a letter for the field", () => {
    for (const letter of MatchLetter.literals) assert.strictEqual(wordOf(letter, null), "not_queried")
  })
})

describe("a receipt", () => {
  const { receipt } = receiptRecord()

  it("has empty strings for company data that was not supplied", () => {
    assert.deepStrictEqual(inputOf({ name: "Muster", street: null, zip: null, city: "Berlin" }), {
      company_name: "Muster",
      company_street: "",
      company_zip: "",
      company_city: "Berlin"
    })
  })

  it("has a summary with exactly the fields that lists show", () => {
    assert.deepStrictEqual(summaryOf(receipt), {
      receipt_id: receipt.receipt_id,
      target_vat_id: receipt.target_vat_id,
      name_match: "match",
      street_match: "mismatch",
      zip_match: "not_provided",
      city_match: "not_queried",
      issued_at: receipt.issued_at
    })
  })

  it("is in the list of its API key, and in the list of its API key and VAT ID", () => {
    assert.deepStrictEqual([receiptList("k1", null), receiptList("k1", "DE1")], ["receipts-k1", "receipts-k1/DE1"])
  })

  const Live = Receipt.mapFields(Struct.omit(["sandbox"]))
  it.prop("is the same after it was stored as an event and a personal document", [Arbitrary.schema(Live)], ([any]) => {
    const answer = {
      source: "bzst" as const,
      valid: true,
      code: "evatr-0000",
      answered_at: noon,
      consultation_number: null,
      valid_from: null,
      valid_until: null
    }
    const evidence = { request: "{}", response: "{}", response_sha256: "", http_status: 200 }
    const event = ReceiptIssued.make(
      { account_id: "a", key_id: "k", receipt: any, answer, attempts: [] },
      { ...any.result, ...referenceIn(any.reference), input: any.input, company_name: null, company_address: null, evidence }
    )
    const document = Schema.decodeUnknownSync(Schema.toCodecJson(ReceiptIssued.personal))(event.personal?.document)
    assert.deepStrictEqual(wholeReceipt(ReceiptIssued.read(event), document), any)
  })
})
