/** Allows pages of other origins to call the service (CORS: Fetch standard, 3.2, read 2026-11). Disabled unless the operator sets origins. */
import { Context, Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { RouteTable } from "#http/pipeline/RouteTable.ts"

/** The allowed origins, such as `https://app.example.com`. `*` allows all origins. */
export const CorsOrigins = Context.Reference<ReadonlyArray<string>>("vatproof/http/pipeline/CorsOrigins", {
  defaultValue: () => []
})

const requestHeaders =
  "Accept, Accept-Language, Authorization, Content-Type, Idempotency-Key, If-None-Match, Prefer, X-Api-Key, X-Request-Id"
const responseHeaders =
  "Content-Disposition, ETag, Idempotent-Replayed, Link, Location, Preference-Applied, RateLimit, RateLimit-Policy, Retry-After, Warning, X-Request-Id, X-Service-Upgrade, X-Service-Usage, X-Trace-Id"
/** How long a browser may cache a preflight response, in seconds. */
const maxAge = "600"

/**
 * Creates the functions that answer preflight requests and add CORS headers. `Access-Control-Allow-Credentials` is never sent, because the
 * service has no cookies and callers send keys in headers.
 */
export const make = Effect.gen(function* () {
  const origins = yield* CorsOrigins
  const { allowedMethods } = yield* RouteTable
  const isOpen = origins.includes("*")
  const isAllowed = (origin: string | undefined): origin is string => origin !== undefined && (isOpen || origins.includes(origin))
  const allowOrigin = (origin: string) => ({ "access-control-allow-origin": isOpen ? "*" : origin })

  return {
    /** Returns the response to a preflight request; null for any other request, an unknown path, or an origin that is not allowed. */
    preflight: ({ headers, method, url }: HttpServerRequest.HttpServerRequest) => {
      const { "access-control-request-method": wanted, origin } = headers
      if (method !== "OPTIONS" || wanted === undefined || !isAllowed(origin)) return null
      const methods = allowedMethods(url.split("?", 1)[0] ?? "/")
      if (methods.length === 0) return null
      return HttpServerResponse.empty({
        headers: {
          ...allowOrigin(origin),
          "access-control-allow-methods": methods.join(", "),
          "access-control-allow-headers": requestHeaders,
          "access-control-max-age": maxAge
        }
      })
    },
    /** Adds the headers that let pages of allowed origins read the response. */
    shared: ({ headers }: HttpServerRequest.HttpServerRequest, response: HttpServerResponse.HttpServerResponse) => {
      if (origins.length === 0) return response
      const vary = response.headers["vary"]
      return HttpServerResponse.setHeaders(response, {
        ...(isOpen ? {} : { vary: vary === undefined ? "Origin" : `${vary}, Origin` }),
        ...(isAllowed(headers["origin"])
          ? { ...allowOrigin(headers["origin"]), "access-control-expose-headers": responseHeaders }
          : {})
      })
    }
  }
})
