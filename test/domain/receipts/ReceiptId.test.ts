import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, DateTime, Schema } from "effect"
import * as ReceiptId from "#domain/receipts/ReceiptId.ts"

const byte = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 }))
const entropy = Arbitrary.array(Arbitrary.schema(byte), { minLength: ReceiptId.entropyBytes, maxLength: ReceiptId.entropyBytes })
const noon = DateTime.makeUnsafe("2026-11-20T12:00:00Z")

describe("a receipt id", () => {
  it.prop("consists of the prefix, the date and ten characters of A-Z and 0-9", [entropy], ([bytes]) => {
    const id = ReceiptId.compose("VP", noon, Uint8Array.from(bytes))
    if (id === null) return assert.isBelow(bytes.filter((one) => one < 252).length, 10)
    assert.match(id, /^VP-QC-20261120-[A-Z0-9]{10}$/u)
    assert.isTrue(ReceiptId.isWellFormed(id))
  })

  it.each([
    "",
    "VP-QC-20261120-ABCDEFGHI",
    "VP-QC-20261120-ABCDEFGHI9\n",
    "vp-QC-20261120-ABCDEFGHI9",
    "VP-QC-20261120-ABCDEFGH\u0000I"
  ])("cannot have the form %j", (text) => assert.isFalse(ReceiptId.isWellFormed(text)))

  it("contains every character about equally often", () => {
    const drawn = new Map<string, number>()
    for (let first = 0; first < 252; first += 1) {
      const id =
        ReceiptId.compose(
          "VP",
          noon,
          Uint8Array.from({ length: ReceiptId.entropyBytes }, () => first)
        ) ?? ""
      drawn.set(id.slice(-1), (drawn.get(id.slice(-1)) ?? 0) + 1)
    }
    assert.deepStrictEqual(new Set(drawn.values()), new Set([7]))
    assert.strictEqual(drawn.size, 36)
  })

  it("is generated without those random bytes that would make some characters more frequent, and is null if too few bytes remain", () => {
    assert.strictEqual(
      ReceiptId.compose("VP", noon, Uint8Array.from([252, 255, 0, 1, 2, 3, 4, 5, 6, 7, 8, 35])),
      "VP-QC-20261120-ABCDEFGHI9"
    )
    assert.isNull(ReceiptId.compose("VP", noon, new Uint8Array(ReceiptId.entropyBytes).fill(255)))
    assert.isNull(ReceiptId.compose("VP", noon, new Uint8Array(9)))
  })

  it("contains the date in UTC", () => {
    const bytes = new Uint8Array(ReceiptId.entropyBytes)
    const at = (iso: string) => ReceiptId.compose("X1", DateTime.makeUnsafe(iso), bytes)?.slice(0, 14)
    assert.strictEqual(at("2026-12-31T23:59:59.999Z"), "X1-QC-20261231")
    assert.strictEqual(at("2027-01-01T00:30:00+01:00"), "X1-QC-20261231")
  })
})
