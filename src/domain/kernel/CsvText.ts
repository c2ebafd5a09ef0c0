/** Text in tables. */

/** Text that spreadsheets interpret as a formula, leading white space included (OWASP, "CSV Injection"; read 2026-11). */
const formula = /^(?:[\t\r]|[\s\p{Cc}]*[=+\-@＝＋－＠])/u

/**
 * Text as a quoted CSV cell (RFC 4180). Prefixes formulas with an apostrophe and replaces control characters by spaces: a line break would end the
 * row in some programs.
 */
export const quoted = (text: string): string => {
  const escaped = (formula.test(text) ? `'${text}` : text).replace(/\p{Cc}+/gu, " ")
  return `"${escaped.replaceAll('"', '""')}"`
}
