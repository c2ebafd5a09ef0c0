import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, DateTime, Schema } from "effect"
import { referenceIn } from "#domain/kernel/PersonalData.ts"
import {
  composeReceiptId,
  isReceiptId,
  inputOf,
  letterOf,
  MatchLetter,
  MatchWord,
  Receipt,
  receiptIdEntropyBytes,
  ReceiptIssued,
  receiptList,
  summaryOf,
  wholeReceipt,
  wordOf
} from "#domain/receipts/Receipt.ts"
import { receiptRecord } from "#test/support/ReceiptRecords.ts"

const byte = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 }))
const entropy = Arbitrary.array(Arbitrary.schema(byte), { minLength: receiptIdEntropyBytes, maxLength: receiptIdEntropyBytes })
const noon = DateTime.makeUnsafe("2026-11-20T12:00:00Z")

describe("the id of a receipt", () => {
  it.prop("has prefix, date and ten characters of A-Z and 0-9", [entropy], ([bytes]) => {
    const id = composeReceiptId("VP", noon, Uint8Array.from(bytes))
    if (id === null) return assert.isBelow(bytes.filter((one) => one < 252).length, 10)
    assert.match(id, /^VP-QC-20261120-[A-Z0-9]{10}$/u)
    assert.isTrue(isReceiptId(id))
  })

  it.each([
    "",
    "VP-QC-20261120-ABCDEFGHI",
    "VP-QC-20261120-ABCDEFGHI9\n",
    "vp-QC-20261120-ABCDEFGHI9",
    "VP-QC-20261120-ABCDEFGH\u0000I"
  ])("is not %j", (text) => assert.isFalse(isReceiptId(text)))

  it("uses every character equally often", () => {
    const drawn = new Map<string, number>()
    for (let first = 0; first < 252; first += 1) {
      const id =
        composeReceiptId(
          "VP",
          noon,
          Uint8Array.from({ length: receiptIdEntropyBytes }, () => first)
        ) ?? ""
      drawn.set(id.slice(-1), (drawn.get(id.slice(-1)) ?? 0) + 1)
    }
    assert.deepStrictEqual(new Set(drawn.values()), new Set([7]))
    assert.strictEqual(drawn.size, 36)
  })

  it("skips bytes that would bias the distribution, and fails if too few are left", () => {
    assert.strictEqual(
      composeReceiptId("VP", noon, Uint8Array.from([252, 255, 0, 1, 2, 3, 4, 5, 6, 7, 8, 35])),
      "VP-QC-20261120-ABCDEFGHI9"
    )
    assert.isNull(composeReceiptId("VP", noon, new Uint8Array(receiptIdEntropyBytes).fill(255)))
    assert.isNull(composeReceiptId("VP", noon, new Uint8Array(9)))
  })

  it("has the date in UTC", () => {
    const bytes = new Uint8Array(receiptIdEntropyBytes)
    const at = (iso: string) => composeReceiptId("X1", DateTime.makeUnsafe(iso), bytes)?.slice(0, 14)
    assert.strictEqual(at("2026-12-31T23:59:59.999Z"), "X1-QC-20261231")
    assert.strictEqual(at("2027-01-01T00:30:00+01:00"), "X1-QC-20261231")
  })
})

describe("a comparison", () => {
  it("is described in words that correspond to the BZSt's letters", () => {
    const expected = { A: "match", B: "mismatch", C: "not_queried", D: "not_provided" } as const
    for (const letter of MatchLetter.literals) {
      assert.strictEqual(wordOf(letter, "supplied"), expected[letter])
      assert.strictEqual(letterOf(wordOf(letter, "supplied")), letter)
    }
    assert.sameMembers(MatchWord.literals.map(letterOf), [...MatchLetter.literals])
  })

  it("that the BZSt did not make has not_provided for supplied fields, and not_queried for others", () => {
    assert.strictEqual(wordOf(null, "Berlin"), "not_provided")
    assert.strictEqual(wordOf(null, null), "not_queried")
  })

  it("of fields that were not supplied is absent, for any answer of the BZSt", () => {
    for (const letter of MatchLetter.literals) assert.strictEqual(wordOf(letter, null), "not_queried")
  })
})

describe("a receipt", () => {
  const { receipt } = receiptRecord()

  it("has empty strings for fields that were not supplied", () => {
    assert.deepStrictEqual(inputOf({ name: "Muster", street: null, zip: null, city: "Berlin" }), {
      company_name: "Muster",
      company_street: "",
      company_zip: "",
      company_city: "Berlin"
    })
  })

  it("has a summary of exactly the fields of a list", () => {
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

  it("is in the list of its key and in that of its VAT ID", () => {
    assert.deepStrictEqual([receiptList("k1", null), receiptList("k1", "DE1")], ["receipts-k1", "receipts-k1/DE1"])
  })

  it.prop("is decoded from its event unchanged", [Arbitrary.schema(Receipt)], ([any]) => {
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
