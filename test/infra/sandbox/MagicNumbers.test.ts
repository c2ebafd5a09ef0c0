import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { memberStates } from "#domain/vat/MemberStates.ts"
import { parse } from "#domain/vat/VatId.ts"
import { magicNumbers, magicOf, viesTestNumbers } from "#infra/sandbox/MagicNumbers.ts"
import { vatIdEnding } from "#test/support/MagicVatIds.ts"
import { statusMessages } from "#infra/sandbox/StatusMessages.ts"

const magicOfText = (vatId: string) => magicOf(Result.getOrThrow(parse(vatId)))

describe("magic numbers", () => {
  it("are valid as the ending of a VAT ID of every member state, and have the same meaning in all member states", () => {
    for (const prefix of memberStates.keys()) {
      for (const [ending, magic] of magicNumbers) {
        const vatId = vatIdEnding(prefix, ending)
        const parsed = parse(vatId)
        assert.isTrue(Result.isSuccess(parsed), vatId)
        assert.strictEqual(magicOfText(vatId), magic, vatId)
      }
    }
  })

  it("have six digits each, and each ending has one meaning", () => {
    const listed = viesTestNumbers.size + 6 + statusMessages.length * 2 + 23 * 3
    assert.strictEqual(magicNumbers.size, listed)
    for (const ending of magicNumbers.keys()) assert.match(ending, /^9[89]\d{4}$/u)
  })

  it("cover every status code of both sources", () => {
    const conducts = [...magicNumbers.values()]
    for (const code of viesTestNumbers.values())
      assert.isTrue(
        conducts.some(({ vies }) => vies.code === code),
        code
      )
    for (const { status } of statusMessages) {
      assert.isTrue(
        conducts.some(({ vies, bzst }) => bzst.code === status && vies.code !== "SERVICE_UNAVAILABLE"),
        status
      )
      assert.isTrue(
        conducts.some(({ vies, bzst }) => bzst.code === status && vies.code === "SERVICE_UNAVAILABLE"),
        status
      )
    }
  })

  it("cause a fault only at VIES if they are 9997xx, only at the BZSt if 9998xx, and at both sources if 9999xx", () => {
    assert.deepStrictEqual(magicOfText("DE100999703").vies, { breakage: "hang" })
    assert.deepStrictEqual(magicOfText("DE100999703").bzst, {})
    assert.deepStrictEqual(magicOfText("DE100999803").vies, {})
    assert.deepStrictEqual(magicOfText("DE100999803").bzst, { breakage: "hang" })
    assert.deepStrictEqual(magicOfText("DE100999903").vies, { breakage: "hang" })
    assert.deepStrictEqual(magicOfText("DE100999903").bzst, { breakage: "hang" })
    assert.deepStrictEqual(magicOfText("DE100999701").vies, { latencyMs: 2_000 })
    assert.deepStrictEqual(magicOfText("DE100999702").vies, { latencyMs: 20_000 })
  })

  it("are all listed in docs/sandbox.md", () => {
    const manual = readFileSync("docs/sandbox.md", "utf8")
    for (const ending of magicNumbers.keys()) {
      const fault = /^999[789](\d\d)$/u.exec(ending)?.[1]
      const status = /^9[89]([0-3]\d{3})$/u.exec(ending)?.[1]
      // For status codes of the BZSt, the manual refers to the BZSt's own list.
      if (status === undefined) assert.include(manual, `\`${fault ?? ending}\``, ending)
    }
  })

  it("do not affect other VAT IDs: a VAT ID that repeats a single digit is invalid, and every other VAT ID is valid", () => {
    for (const vatId of ["DE123456789", "DE811115368", "CZ45274649", "ESA15075062", "NL123456789B01", "RO12", "IE1X34567A"]) {
      assert.strictEqual(magicOfText(vatId).meaning, "valid", vatId)
    }
    for (const vatId of ["DE111111111", "CZ11111111", "ATU00000000", "NL000000000B01", "CY22222222X", "PL0000000000"]) {
      assert.strictEqual(magicOfText(vatId).bzst.code, "evatr-2001", vatId)
    }
  })
})
