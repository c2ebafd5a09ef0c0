/** Quotes texts for CSV files. */

/**
 * Text that spreadsheets interpret as a formula, leading white space included (OWASP, "CSV Injection"; read 2026-11). A plain number, such
 * as -5 or +49, is no formula.
 */
const formula = /^(?![+-]\d+(?:[.,]\d+)?$)(?:[\t\r]|[\s\p{Cc}]*[=+\-@＝＋－＠])/u

/**
 * Returns a text as a quoted CSV cell (RFC 4180). Puts an apostrophe before a formula, and replaces control characters by spaces,
 * because some programs end the row at a line break.
 */
export const quoted = (text: string): string => unchanged((formula.test(text) ? `'${text}` : text).replace(/\p{Cc}+/gu, " "))

/** Returns a caller's own text as a quoted CSV cell, unchanged. */
export const unchanged = (text: string): string => `"${text.replaceAll('"', '""')}"`
