/**
 * Rewrites the path and query of a request so that the router can match every request. The router treats `;` in a path as the
 * start of the query, and `#` as the end of path and query. An escape with invalid UTF-8 matches no route in a path, and stays
 * undecoded in a query.
 */

/** The character that replaces invalid UTF-8 in the Encoding Standard. The schemas of the endpoints reject it. */
const replacement = encodeURIComponent("\uFFFD")

const needsNormalizing = /[%;#]/u
/** Matches consecutive escapes, because a character may take several, or a percent sign without digits. */
const escapes = /(?:%[0-9a-f]{2})+|%/giu

const textOf = (escaped: string) => Buffer.from(escaped.replaceAll("%", ""), "hex").toString("utf8")

const normalizeEscapes = (escaped: string) => {
  if (escaped === "%") return replacement
  const text = textOf(escaped)
  return text.includes("\uFFFD") ? encodeURIComponent(text) : escaped
}

/** Returns the path and query for the router. They stay unchanged if the router can read them. */
export const requestTarget = (target: string): string => {
  if (!needsNormalizing.test(target)) return target
  const queryAt = target.indexOf("?")
  const path = queryAt < 0 ? target : target.slice(0, queryAt)
  const query = queryAt < 0 ? "" : target.slice(queryAt)
  return (path.replaceAll(";", "%3B") + query).replaceAll("#", "%23").replace(escapes, normalizeEscapes)
}
