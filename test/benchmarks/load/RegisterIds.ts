/** VAT IDs of every member state, none of them one of the sandbox's magic numbers. */

/** `*` stands for six digits, which is where the sandbox looks. */
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

/** The VAT ID number `index` of a member state, for an index below 870,000. */
export const vatId = (state: MemberState, index: number) => state + forms[state].replace("*", String(100_001 + index))

/** The workload's own Austrian VAT IDs, and those of `lookups`, are below this index. */
const firstInTurn = 20_000

/** Of all member states in turn: 22 million, none of which is among those of the workload. Then they begin again. */
export const inTurn = (index: number) => {
  const [first = "AT"] = memberStates
  const turn = Math.floor(index / memberStates.length) % (perMemberState - firstInTurn)
  return vatId(memberStates[index % memberStates.length] ?? first, firstInTurn + turn)
}
