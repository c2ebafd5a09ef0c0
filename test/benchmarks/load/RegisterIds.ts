/** VAT IDs of all member states, without the sandbox's magic numbers. */

/** The form of a VAT ID by member state. `*` stands for six digits, by which the sandbox recognizes magic numbers. */
const forms = {
  AT: "U10*",
  BE: "0100*",
  BG: "100*",
  CY: "10*A",
  CZ: "10*",
  DE: "100*",
  DK: "10*",
  EE: "100*",
  EL: "100*",
  ES: "A1*B",
  FI: "10*",
  FR: "40100*",
  HR: "10000*",
  HU: "10*",
  IE: "1*A",
  IT: "10000*",
  LT: "100*",
  LU: "10*",
  LV: "10000*",
  MT: "10*",
  NL: "100*B01",
  PL: "1000*",
  PT: "100*",
  RO: "100*",
  SE: "100000*",
  SI: "10*",
  SK: "1000*"
}

export type MemberState = keyof typeof forms

const isMemberState = (text: string): text is MemberState => text in forms

export const memberStates: ReadonlyArray<MemberState> = Object.keys(forms).filter(isMemberState)

const perMemberState = 870_000

/** Returns the VAT ID number `index` of a member state; `index` is below 870,000. */
export const vatId = (state: MemberState, index: number) => state + forms[state].replace("*", String(100_001 + index))

/** First index of new VAT IDs. The workload and the section `lookups` use VAT IDs with lower indexes. */
const firstNew = 20_000

/** Returns a new VAT ID for each index, of all member states in turn. The VAT IDs repeat after 22 million. */
export const roundRobin = (index: number) => {
  const [first = "AT"] = memberStates
  const turn = Math.floor(index / memberStates.length) % (perMemberState - firstNew)
  return vatId(memberStates[index % memberStates.length] ?? first, firstNew + turn)
}
