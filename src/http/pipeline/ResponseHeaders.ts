/** The headers that every response has (rules 5, 41). */
import { Effect, MutableRef } from "effect"
import { secondsOfMinute } from "#domain/callers/RateLimits.ts"
import { nearLimit } from "#domain/callers/Standing.ts"
import type { StartedRequest } from "#http/pipeline/RequestStart.ts"
import { basePath, documentPaths, Site } from "#http/pipeline/SiteSettings.ts"

/** The headers that a response brings along, by their names in lower case. */
interface HasHeaders {
  readonly status: number
  readonly headers: { readonly [name: string]: string | undefined }
}

export const isPage = ({ headers }: Pick<HasHeaders, "headers">) => headers["content-type"]?.startsWith("text/html") === true

/** Gives a function from a response and what its request collected to the headers that it needs besides its own. */
export const make = Effect.gen(function* () {
  const site = yield* Site
  const base = basePath(site)
  const serviceLinks = `<${base}${documentPaths.openApi}>; rel="service-desc", <${base}${documentPaths.docs}>; rel="service-doc"`

  return (response: HasHeaders, { scope, served: { requestId, traceId } }: Pick<StartedRequest, "scope" | "served">) => {
    const standing = MutableRef.get(scope.standing)
    const headers: Record<string, string> = { "x-request-id": requestId, "x-content-type-options": "nosniff" }
    if (traceId !== null) headers["x-trace-id"] = traceId
    // An answer is true for its moment: nobody but us may keep it, unless its endpoint says otherwise.
    if (response.headers["cache-control"] === undefined) headers["cache-control"] = "no-store"
    // Only answers of validations, which are asked most, do without it (RFC 8631).
    if (response.status !== 200 || standing === null || standing.window === null) headers["link"] = serviceLinks
    if (standing === null) return headers
    const { usage, window } = standing
    // A shared cache would show one caller's usage to others.
    const kept = response.headers["cache-control"]
    if (kept?.startsWith("public") === true) headers["cache-control"] = kept.replace("public", "private")
    headers["x-service-usage"] = `${usage.used}/${usage.limit}`
    if (nearLimit(usage)) headers["x-service-upgrade"] = site.upgradeUrl
    if (window !== null) {
      // draft-ietf-httpapi-ratelimit-headers-10, read 2026-11.
      headers["ratelimit-policy"] = `"minute";q=${window.limit};w=${secondsOfMinute}`
      headers["ratelimit"] = `"minute";r=${Math.max(0, window.remaining)};t=${window.resetSeconds}`
    }
    return headers
  }
})
