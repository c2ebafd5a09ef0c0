/** The headers that every response gets (rules 5, 41). */
import { Effect, MutableRef } from "effect"
import { rateWindowSeconds } from "#domain/callers/RateLimiter.ts"
import { nearLimit } from "#domain/callers/Standing.ts"
import type { StartedRequest } from "#http/pipeline/RequestStart.ts"
import { basePath, documentPaths, Site } from "#http/pipeline/SiteSettings.ts"

/** The headers of a response, with names in lower case. */
interface HasHeaders {
  readonly status: number
  readonly headers: { readonly [name: string]: string | undefined }
}

export const isPage = ({ headers }: Pick<HasHeaders, "headers">) => headers["content-type"]?.startsWith("text/html") === true

/** Creates a function that returns the additional headers of a response. */
export const make = Effect.gen(function* () {
  const site = yield* Site
  const base = basePath(site)
  const serviceLinks = `<${base}${documentPaths.openApi}>; rel="service-desc", <${base}${documentPaths.docs}>; rel="service-doc"`

  return (response: HasHeaders, { hints, served: { requestId, traceId } }: Pick<StartedRequest, "hints" | "served">) => {
    const standing = MutableRef.get(hints.standing)
    const headers: Record<string, string> = { "x-request-id": requestId, "x-content-type-options": "nosniff" }
    if (traceId !== null) headers["x-trace-id"] = traceId
    // A response may be cached only if its endpoint sets Cache-Control.
    if (response.headers["cache-control"] === undefined) headers["cache-control"] = "no-store"
    // Adds links to the documentation (RFC 8631) to every response except successful validations, which are the most frequent
    // responses.
    if (response.status !== 200 || standing === null || standing.window === null) headers["link"] = serviceLinks
    if (standing === null) return headers
    const { usage, window } = standing
    // A shared cache must not keep a response that has one caller's usage.
    const kept = response.headers["cache-control"]
    if (kept?.startsWith("public") === true) headers["cache-control"] = kept.replace("public", "private")
    headers["x-service-usage"] = `${usage.used}/${usage.limit}`
    if (nearLimit(usage)) headers["x-service-upgrade"] = site.upgradeUrl
    if (window !== null) {
      // The format of these headers is from draft-ietf-httpapi-ratelimit-headers-10 (read 2026-11).
      headers["ratelimit-policy"] = `"minute";q=${window.limit};w=${rateWindowSeconds}`
      headers["ratelimit"] = `"minute";r=${Math.max(0, window.remaining)};t=${window.resetSeconds}`
    }
    return headers
  }
})
