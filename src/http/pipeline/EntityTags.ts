/** Adds ETags to cacheable responses, and answers 304 to a client that has the current version (RFC 9110, 8.8.3 and 13.1.2). */
import { Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { Crypto } from "#domain/kernel/Crypto.ts"

/** The headers of a 200 response that the 304 response repeats (RFC 9110, 15.4.5). */
const headersOf304 = ["cache-control", "vary"]

/** Creates a function that adds an ETag to a cacheable response or replaces the response by a 304. Other responses stay unchanged. */
export const make = Effect.map(Crypto, ({ sha256Hex }) => {
  // Caches ETags by body object. A static document has the same body object in each response, so its ETag is computed once.
  const tags = new WeakMap<object, string>()

  return (request: HttpServerRequest.HttpServerRequest, response: HttpServerResponse.HttpServerResponse) => {
    const { body, headers, status } = response
    const cacheControl = headers["cache-control"]
    if (cacheControl === undefined || status !== 200 || body._tag !== "Uint8Array" || cacheControl.includes("no-store")) {
      return response
    }
    const etag = tags.get(body) ?? `"${sha256Hex(body.text ?? body.body).slice(0, 32)}"`
    tags.set(body, etag)
    if (!names(request.headers["if-none-match"], etag)) return HttpServerResponse.setHeader(response, "etag", etag)
    const kept = Object.fromEntries(headersOf304.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])))
    return HttpServerResponse.empty({ status: 304, headers: { ...kept, etag } })
  }
})

/** Returns true if If-None-Match names the ETag. The comparison ignores `W/`, which the ETag of a compressed response has. */
const names = (ifNoneMatch: string | undefined, etag: string): boolean =>
  ifNoneMatch?.split(",").some((one) => one.trim() === "*" || one.trim().replace(/^W\//u, "") === etag) === true
