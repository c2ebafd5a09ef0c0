/**
 * What a request leaves behind besides its answer: one server span that all its other spans belong to, its duration and outcome as
 * metrics, and a log line if it was remarkable. Names and units by OpenTelemetry's conventions for HTTP servers
 * (https://opentelemetry.io/docs/specs/semconv/http/, read 2026-11).
 */
import { Clock, Effect, Exit, type Metric, MutableRef, Option, Tracer } from "effect"
import { type HttpServerRequest, type HttpServerResponse, HttpTraceContext } from "effect/http"
import { RequestContext, type ServedRequest } from "#domain/RequestContext.ts"
import { TrustedProxies } from "#http/ClientAddress.ts"
import * as HttpMetrics from "#http/HttpMetrics.ts"
import * as RequestLog from "#http/RequestLog.ts"
import type { CollectedHeaders } from "#http/RequestScope.ts"
import { templateOf } from "#http/Routes.ts"

const knownMethods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"])

/** Gives a function that serves a request and watches it; `serve` runs with the request's context, which has the id of its trace. */
export const make = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const context = yield* Effect.context<never>()
  const log = yield* RequestLog.make
  const proxies = yield* TrustedProxies
  const durations = makeDurations()

  return <E, R>(
    request: HttpServerRequest.HttpServerRequest,
    ids: Omit<ServedRequest, "traceId">,
    scope: CollectedHeaders,
    serve: (served: ServedRequest) => Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
  ): Effect.Effect<HttpServerResponse.HttpServerResponse, E, Exclude<R, Tracer.ParentSpan>> => {
    const route = templateOf(request.url.split("?", 1)[0] ?? "/")
    const method = knownMethods.has(request.method) ? request.method : "_OTHER"
    const scheme = schemeOf(request, proxies.count)
    // A caller's trace goes on here; without one a trace begins.
    const parent = Option.getOrUndefined(HttpTraceContext.w3c(request.headers))
    const active = HttpMetrics.activeRequests({ "http.request.method": method, "url.scheme": scheme })

    return Effect.useSpan(
      route === null ? method : `${method} ${route}`,
      { kind: "server", ...(parent === undefined ? { root: true } : { parent }) },
      (span) => {
        const started = clock.monotonicTimeNanosUnsafe()
        active.updateUnsafe(1, context)
        span.attribute("http.request.method", method)
        span.attribute("url.scheme", scheme)
        const served = { ...ids, traceId: span.traceId }
        return Effect.onExit(serve(served), (exit) => {
          const durationMs = Number(clock.monotonicTimeNanosUnsafe() - started) / 1e6
          const status = Exit.isSuccess(exit) ? exit.value.status : null
          active.updateUnsafe(-1, context)
          durations(method, route, status, scheme).updateUnsafe(durationMs / 1000, context)
          // At the end, because the router writes the route in its own way.
          if (route !== null) span.attribute("http.route", route)
          if (status !== null) span.attribute("http.response.status_code", status)
          if (status === null || status >= 500) span.attribute("error.type", errorTypeOf(status))
          const line = { method, route, status, durationMs, refusal: MutableRef.get(scope.refusal) }
          return log(line, clock.currentTimeMillisUnsafe()) ?? Effect.void
        }).pipe(Effect.provideService(RequestContext, served), Effect.provideService(Tracer.ParentSpan, span))
      }
    )
  }
})

/** A client that leaves before its answer gets none. */
const errorTypeOf = (status: number | null) => (status === null ? "client_left" : String(status))

/** The series of a request. There are as many as routes and statuses. */
const makeDurations = () => {
  const known = new Map<string, Metric.Histogram<number>>()
  return (method: string, route: string | null, status: number | null, scheme: string) => {
    const key = `${method} ${route} ${status} ${scheme}`
    const series = known.get(key) ?? durationOf(method, route, status, scheme)
    known.set(key, series)
    return series
  }
}

const durationOf = (method: string, route: string | null, status: number | null, scheme: string) =>
  HttpMetrics.requestDuration({
    "http.request.method": method,
    ...(route === null ? {} : { "http.route": route }),
    ...(status === null ? {} : { "http.response.status_code": String(status) }),
    "url.scheme": scheme,
    ...(status === null || status >= 500 ? { "error.type": errorTypeOf(status) } : {})
  })

/** What the client used, as the nearest trusted proxy tells it. */
const schemeOf = ({ headers }: HttpServerRequest.HttpServerRequest, trustedProxies: number) =>
  trustedProxies > 0 && headers["x-forwarded-proto"]?.split(",").at(-1)?.trim() === "https" ? "https" : "http"
