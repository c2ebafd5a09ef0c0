/** VAT IDs whose ending is a magic number of the sandbox. */

const templates: ReadonlyMap<string, string> = new Map([
  ["AT", "U10******"],
  ["BE", "0100******"],
  ["BG", "100******"],
  ["CY", "10******X"],
  ["CZ", "10******"],
  ["DE", "100******"],
  ["DK", "10******"],
  ["EE", "100******"],
  ["EL", "100******"],
  ["ES", "B1******X"],
  ["FI", "10******"],
  ["FR", "40100******"],
  ["HR", "10000******"],
  ["HU", "10******"],
  ["IE", "1******X"],
  ["IT", "10000******"],
  ["LT", "100******"],
  ["LU", "10******"],
  ["LV", "40000******"],
  ["MT", "10******"],
  ["NL", "100******B01"],
  ["PL", "1000******"],
  ["PT", "500******"],
  ["RO", "10******"],
  ["SE", "550000******"],
  ["SI", "10******"],
  ["SK", "2020******"],
  ["XI", "100******"]
])

/** Returns a VAT ID of the member state (by its prefix) with this magic ending, e.g. `DE` and `999301` give `DE100999301`. */
export const vatIdEnding = (prefix: string, ending: string): string =>
  `${prefix}${(templates.get(prefix) ?? "******").replace("******", ending)}`
