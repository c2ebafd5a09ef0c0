/**
 * Reads the plainest request there is, one that is nothing but its head, as RFC 9112 has it (read 2026-11). Whatever could be read in more than
 * one way, or says that more of it is to come, is not plain, and left to Node's parser.
 */

/** Names of headers are in lower case, and each is there once. */
export interface PlainRequest {
  readonly method: "GET"
  readonly url: string
  readonly headers: { readonly [name: string]: string | undefined }
}

/** Longer ones are read by Node. */
const maxBytes = 4_096

/** A GET without a body, of visible ASCII, each line as it should be, and nothing behind the empty line. */
const wellFormed = /^GET ([!-~]+) HTTP\/1\.1\r\n((?:[\dA-Za-z-]+:[ -~]*\r\n)*)\r\n$/u

/** By these a request has more than its head, or its connection becomes another one (RFC 9110, 6.6.2, 7.6.1, 7.8, 8.6, 10.1; RFC 9112, 6.1). */
const notPlain = new Set([
  "content-length",
  "expect",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade"
])

const isPlain = (name: string, value: string) =>
  name === "connection" ? value.toLowerCase() === "keep-alive" : !notPlain.has(name)

/** The one request that `bytes` are; null if they are not, or not certainly. */
export const read = (bytes: Buffer): PlainRequest | null => {
  if (bytes.length > maxBytes) return null
  const [, url, lines] = wellFormed.exec(bytes.toString("latin1")) ?? []
  if (url === undefined || lines === undefined) return null
  const headers: Record<string, string> = {}
  for (let at = 0; at < lines.length;) {
    const colon = lines.indexOf(":", at)
    const end = lines.indexOf("\r\n", colon)
    const name = lines.slice(at, colon).toLowerCase()
    const value = lines.slice(colon + 1, end).trim()
    if (name in headers || !isPlain(name, value)) return null
    headers[name] = value
    at = end + 2
  }
  return { method: "GET", url, headers }
}
