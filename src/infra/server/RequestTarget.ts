/**
 * Rewrites the path and query of a request so that Effect's router can match the request. Without this, the router would end the
 * path at `;`, and the path or query at `#`. A percent escape with invalid UTF-8 would match no route in a path, and would stay
 * undecoded in a query.
 */

/** The character that replaces invalid UTF-8 in the Encoding Standard. The schemas of the endpoints reject it. */
const replacement = encodeURIComponent("\uFFFD")

const needsNormalizing = /[%;#]/u
/**
 * Matches a sequence of percent escapes, because one character may take several escapes. Also matches a percent sign without two
 * hexadecimal digits.
 */
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
