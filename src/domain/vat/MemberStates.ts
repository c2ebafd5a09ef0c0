/**
 * The VAT ID structures of the 27 member states and of Northern Ireland, as the Commission's VIES FAQ publishes them
 * (https://ec.europa.eu/taxation_customs/vies/#/faq, question 11; read 2026-10).
 *
 * Only the structure is checked. Check digits are ignored: after a member state changes its rules, real numbers fail the
 * published algorithms for months. `[A-Z0-9+*]` stands for the published "letter, digit, + or *".
 */

/**
 * One member state or Northern Ireland: its VAT prefix, its ISO 3166-1 alpha-2 code (different from the prefix only for Greece),
 * and the structure after the prefix.
 */
export interface MemberState {
  readonly prefix: string
  readonly alpha2: string
  readonly name: string
  readonly structure: string
  readonly pattern: RegExp
}

const row = (prefix: string, name: string, structure: string, pattern: RegExp, alpha2 = prefix): MemberState => ({
  prefix,
  alpha2,
  name,
  structure,
  pattern
})

const rows: ReadonlyArray<MemberState> = [
  row("AT", "Austria", "U and 8 digits", /^U\d{8}$/u),
  row("BE", "Belgium", "0 or 1 and 9 digits", /^[01]\d{9}$/u),
  row("BG", "Bulgaria", "9 or 10 digits", /^\d{9,10}$/u),
  row("CY", "Cyprus", "8 digits and a letter", /^\d{8}[A-Z]$/u),
  row("CZ", "Czechia", "8, 9 or 10 digits", /^\d{8,10}$/u),
  row("DE", "Germany", "9 digits", /^\d{9}$/u),
  row("DK", "Denmark", "8 digits", /^\d{8}$/u),
  row("EE", "Estonia", "9 digits", /^\d{9}$/u),
  row("EL", "Greece", "9 digits", /^\d{9}$/u, "GR"),
  row("ES", "Spain", "9 characters, the first and the last not both digits", /^(?:[A-Z]\d{7}[A-Z0-9]|\d{8}[A-Z])$/u),
  row("FI", "Finland", "8 digits", /^\d{8}$/u),
  row("FR", "France", "2 letters or digits and 9 digits", /^[A-Z0-9]{2}\d{9}$/u),
  row("HR", "Croatia", "11 digits", /^\d{11}$/u),
  row("HU", "Hungary", "8 digits", /^\d{8}$/u),
  row(
    "IE",
    "Ireland",
    "7 digits and 1 or 2 letters, the second digit may be a letter, + or *",
    /^(?:\d[A-Z0-9+*]\d{5}[A-Z]|\d{7}[A-Z]{2})$/u
  ),
  row("IT", "Italy", "11 digits", /^\d{11}$/u),
  row("LT", "Lithuania", "9 or 12 digits", /^(?:\d{9}|\d{12})$/u),
  row("LU", "Luxembourg", "8 digits", /^\d{8}$/u),
  row("LV", "Latvia", "11 digits", /^\d{11}$/u),
  row("MT", "Malta", "8 digits", /^\d{8}$/u),
  // Real Dutch numbers have 9 digits, B and 2 digits. The published structure allows more, and the service must never reject a
  // real number.
  row("NL", "Netherlands", "12 letters, digits, + or *", /^[A-Z0-9+*]{12}$/u),
  row("PL", "Poland", "10 digits", /^\d{10}$/u),
  row("PT", "Portugal", "9 digits", /^\d{9}$/u),
  row("RO", "Romania", "2 to 10 digits", /^\d{2,10}$/u),
  row("SE", "Sweden", "12 digits", /^\d{12}$/u),
  row("SI", "Slovenia", "8 digits", /^\d{8}$/u),
  row("SK", "Slovakia", "10 digits", /^\d{10}$/u),
  row("XI", "Northern Ireland", "9 or 12 digits, or GD or HA and 3 digits", /^(?:\d{9}|\d{12}|(?:GD|HA)\d{3})$/u)
]

/** Returns false for Northern Ireland. VIES validates its VAT IDs, but the BZSt does not confirm them. */
export const isMember = ({ prefix }: MemberState): boolean => prefix !== "XI"

/** All 27 member states and Northern Ireland by VAT prefix. */
export const memberStates: ReadonlyMap<string, MemberState> = new Map(rows.map((state) => [state.prefix, state]))
