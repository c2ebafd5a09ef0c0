/** Format check of VAT IDs for the baseline: the hand-written Fastify server (BaselineServer.ts) that the benchmarks compare the service with. */

export const normalise = (input: string) => input.replace(/[ .-]/gu, "").toUpperCase()

const forms: ReadonlyMap<string, RegExp> = new Map([
  ["AT", /^U\d{8}$/u],
  ["BE", /^[01]\d{9}$/u],
  ["BG", /^\d{9,10}$/u],
  ["CY", /^\d{8}[A-Z]$/u],
  ["CZ", /^\d{8,10}$/u],
  ["DE", /^\d{9}$/u],
  ["DK", /^\d{8}$/u],
  ["EE", /^\d{9}$/u],
  ["EL", /^\d{9}$/u],
  ["ES", /^(?:[A-Z]\d{7}[A-Z0-9]|\d{8}[A-Z])$/u],
  ["FI", /^\d{8}$/u],
  ["FR", /^[A-Z0-9]{2}\d{9}$/u],
  ["HR", /^\d{11}$/u],
  ["HU", /^\d{8}$/u],
  ["IE", /^(?:\d[A-Z0-9+*]\d{5}[A-Z]|\d{7}[A-Z]{2})$/u],
  ["IT", /^\d{11}$/u],
  ["LT", /^(?:\d{9}|\d{12})$/u],
  ["LU", /^\d{8}$/u],
  ["LV", /^\d{11}$/u],
  ["MT", /^\d{8}$/u],
  ["NL", /^[A-Z0-9+*]{12}$/u],
  ["PL", /^\d{10}$/u],
  ["PT", /^\d{9}$/u],
  ["RO", /^\d{2,10}$/u],
  ["SE", /^\d{12}$/u],
  ["SI", /^\d{8}$/u],
  ["SK", /^\d{10}$/u]
])

export const isWellFormed = (vatId: string) => forms.get(vatId.slice(0, 2))?.test(vatId.slice(2)) ?? false
