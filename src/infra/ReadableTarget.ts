/**
 * A request's path and query as the router can read all of them: it would take `;` in a path for the beginning of the query and `#` for the
 * end of both, match no route where an escape is no UTF-8, and leave such a one in a query as it is, as if it had been meant.
 */

/** Stands for bytes that are no UTF-8 (the Encoding Standard's name for it). Whoever reads text of a caller refuses it. */
const replacement = encodeURIComponent("\uFFFD")

const needsCare = /[%;#]/u
/** Escapes in a row, as a character may be several, or a percent sign that begins none. */
const escapes = /(?:%[0-9a-f]{2})+|%/giu

const textOf = (escaped: string) => Buffer.from(escaped.replaceAll("%", ""), "hex").toString("utf8")

const readableEscapes = (escaped: string) => {
  if (escaped === "%") return replacement
  const text = textOf(escaped)
  return text.includes("\uFFFD") ? encodeURIComponent(text) : escaped
}

/** Of what is readable as it is nothing is changed. */
export const readableTarget = (target: string): string => {
  if (!needsCare.test(target)) return target
  const queryAt = target.indexOf("?")
  const path = queryAt < 0 ? target : target.slice(0, queryAt)
  const query = queryAt < 0 ? "" : target.slice(queryAt)
  return (path.replaceAll(";", "%3B") + query).replaceAll("#", "%23").replace(escapes, readableEscapes)
}
