import { assert, describe, it } from "@effect/vitest"
import { memberStates } from "#domain/vat/MemberStates.ts"

interface Examples {
  readonly alpha2?: string
  /** Published and real numbers. */
  readonly good: ReadonlyArray<string>
  /** Malformed numbers, as they are after normalisation. */
  readonly bad: ReadonlyArray<string>
}

const examples: Readonly<Record<string, Examples>> = {
  AT: { good: ["U13585627", "U12345678"], bad: ["13585627", "U1358562", "U135856277", "V13585627", "UU3585627"] },
  BE: { good: ["0428759497", "1000000197"], bad: ["428759497", "2428759497", "04287594970", "042875949A"] },
  BG: { good: ["175074752", "7523169263"], bad: ["17507475", "17507475212", "17507475A"] },
  CY: { good: ["10259033P", "60000012X"], bad: ["10259033", "1025903P", "102590334", "102590333P", "10259033PP"] },
  CZ: { good: ["25123891", "640903926", "7103192745"], bad: ["2512389", "71031927450", "2512389A"] },
  DE: { good: ["136695976", "123456789", "000000000"], bad: ["13669597", "1366959760", "13669597A", "DE136695976"] },
  DK: { good: ["13585628"], bad: ["1358562", "135856280", "1358562A"] },
  EE: { good: ["100931558"], bad: ["10093155", "1009315580", "10093155A"] },
  EL: { alpha2: "GR", good: ["094259216"], bad: ["94259216", "0942592160", "09425921A"] },
  ES: {
    good: ["B58378431", "X1234567L", "54362315K", "A28015865", "N0112768B"],
    bad: ["543623155", "B5837843", "B583784311", "BB8378431", "5436231KK", "B58378A31"]
  },
  FI: { good: ["20774740"], bad: ["2077474", "207747400", "2077474A"] },
  FR: {
    good: ["40303265045", "K7399859412", "2H123456789", "ZZ123456789"],
    bad: ["4030326504", "403032650450", "4030326504A", "+0303265045"]
  },
  HR: { good: ["33392005961"], bad: ["3339200596", "333920059610", "3339200596A"] },
  HU: { good: ["12892312"], bad: ["1289231", "128923120", "1289231A"] },
  IE: {
    good: ["6433435F", "6433435OA", "8D79739I", "3628739UA", "9+12345A", "9*12345A", "1234567WI"],
    bad: ["6433435", "6433435FAB", "64334350", "D433435F", "6-33435F", "8D79739IA", "64334351A"]
  },
  IT: { good: ["00743110157"], bad: ["0743110157", "007431101570", "0074311015A"] },
  LT: { good: ["119511515", "100001919017"], bad: ["11951151", "1195115150", "11951151501", "1000019190170"] },
  LU: { good: ["15027442"], bad: ["1502744", "150274420", "1502744A"] },
  LV: { good: ["40003521600"], bad: ["4000352160", "400035216000", "4000352160A"] },
  MT: { good: ["11679112"], bad: ["1167911", "116791120", "1167911A"] },
  NL: {
    good: ["004495445B01", "000099998B57", "A+*34567890B"],
    bad: ["004495445B0", "004495445B012", "004495445B0-", "004495445B0ä"]
  },
  PL: { good: ["8567346215"], bad: ["856734621", "85673462150", "856734621A"] },
  PT: { good: ["501964843"], bad: ["50196484", "5019648430", "50196484A"] },
  RO: { good: ["18547290", "19", "1234567890"], bad: ["1", "12345678901", "1854729A", ""] },
  SE: { good: ["123456789701"], bad: ["12345678970", "1234567897010", "12345678970A"] },
  SI: { good: ["50223054"], bad: ["5022305", "502230540", "5022305A"] },
  SK: { good: ["2022749619"], bad: ["202274961", "20227496190", "202274961A"] },
  XI: {
    good: ["110305878", "366303068001", "GD123", "HA500"],
    bad: ["11030587", "1103058780", "GD12", "GD1234", "GB123", "HA50A"]
  }
}

describe("the table of member states", () => {
  it("includes the 27 member states and Northern Ireland, each under its VAT prefix", () => {
    assert.deepStrictEqual([...memberStates.keys()].toSorted(), Object.keys(examples).toSorted())
    for (const [prefix, state] of memberStates) assert.strictEqual(state.prefix, prefix)
  })

  it("has ISO codes that differ from the VAT prefix only for Greece", () => {
    for (const { alpha2, prefix } of memberStates.values()) assert.strictEqual(alpha2, examples[prefix]?.alpha2 ?? prefix)
  })

  for (const [prefix, { bad, good }] of Object.entries(examples)) {
    const matches = (number: string) => memberStates.get(prefix)?.pattern.test(number)

    it.each(good)(`accepts the number %s after the prefix ${prefix}`, (number) => {
      assert.isTrue(matches(number))
    })

    it.each(bad)(`rejects the number "%s" after the prefix ${prefix}`, (number) => {
      assert.isFalse(matches(number))
    })

    it(`rejects white space and control characters around a number after the prefix ${prefix}`, () => {
      for (const number of good) {
        for (const more of [`${number}\n`, `\n${number}`, ` ${number}`, `${number}\u0000`]) assert.isFalse(matches(more), more)
      }
    })
  }
})
