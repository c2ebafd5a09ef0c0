/**
 * Records the telemetry of each request: a server span as the parent of its other spans, metrics of its duration and outcome, and a log
 * line if `RequestLog` writes one. Names and units follow OpenTelemetry's conventions for HTTP servers
 * (https://opentelemetry.io/docs/specs/semconv/http/, read 2026-11).
 */
import { Clock, Context, Effect, Exit, MutableRef, Option, type Tracer } from "effect"
import { Headers, type HttpServerResponse, HttpTraceContext } from "effect/http"
import { Exemplars } from "#domain/telemetry/Exemplars.ts"
import type { ServedRequest } from "#domain/kernel/RequestContext.ts"
import { TrustedProxies } from "#http/pipeline/ClientAddress.ts"
import * as HttpMetrics from "#http/pipeline/HttpMetrics.ts"
import * as RequestLog from "#http/pipeline/RequestLog.ts"
import type { ResponseHints } from "#http/pipeline/ResponseHints.ts"
import { RouteTable } from "#http/pipeline/RouteTable.ts"

const knownMethods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"])

/**
 * A request whose telemetry has begun. `end` completes the telemetry, and must be called exactly once. If the request needs a log line,
 * `end` returns the effect that writes it.
 */
export interface WatchedRequest {
  readonly served: ServedRequest
  readonly span: Tracer.Span
  readonly end: (
    exit: Exit.Exit<Pick<HttpServerResponse.HttpServerResponse, "status">, unknown>
  ) => Effect.Effect<void> | undefined
}

/** The parts of a request that telemetry reads. Header names are in lower case. */
export interface InboundRequest {
  readonly method: string
  readonly url: string
  readonly headers: { readonly [name: string]: string | ReadonlyArray<string> | undefined }
}

/**
 * Creates a function that begins a request's telemetry. The function runs without Effect, because it adds its cost to every request.
 */
export const make = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const tracer = yield* Effect.tracer
  const context = yield* Effect.context<never>()
  const log = yield* RequestLog.make
  const { templateOf } = yield* RouteTable
  const proxies = yield* TrustedProxies
  const exemplars = yield* Exemplars
  const actives = makeSeries(activeOf)
  const durations = makeSeries(durationOf)

  return (request: InboundRequest, ids: Omit<ServedRequest, "traceId">, hints: ResponseHints): WatchedRequest => {
    const route = templateOf(pathOf(request.url))
    const method = knownMethods.has(request.method) ? request.method : "_OTHER"
    const scheme = schemeOf(request, proxies.count)
    // Continues the caller's trace, or begins a new one.
    const parent = parentOf(request)
    const active = actives(method, scheme)
    const span = tracer.span({
      name: route === null ? method : `${method} ${route}`,
      kind: "server",
      parent,
      root: Option.isNone(parent),
      annotations: Context.empty(),
      links: [],
      startTime: clock.currentTimeNanosUnsafe(),
      sampled: true
    })
    const started = clock.monotonicTimeNanosUnsafe()
    active.updateUnsafe(1, context)

    const end: WatchedRequest["end"] = (exit) => {
      const durationMs = Number(clock.monotonicTimeNanosUnsafe() - started) / 1e6
      const status = Exit.isSuccess(exit) ? exit.value.status : null
      active.updateUnsafe(-1, context)
      const duration = durations(method, route, status, scheme, MutableRef.get(hints.isLive) ? "live" : "")
      duration.updateUnsafe(durationMs / 1000, context)
      // An exemplar links to a trace, which must have been exported. An unsampled trace is exported only after a failure, so it gets no
      // exemplar.
      if (span.sampled) {
        exemplars.note(duration, { traceId: span.traceId, value: durationMs / 1000, atMs: clock.currentTimeMillisUnsafe() })
      }
      if (span.sampled || status === null || status >= 500) {
        span.attribute("http.request.method", method)
        span.attribute("url.scheme", scheme)
        // Overwrites the value of the router, which writes parameters as `:name` instead of `{name}`.
        if (route !== null) span.attribute("http.route", route)
        if (status !== null) span.attribute("http.response.status_code", status)
        if (status === null || status >= 500) span.attribute("error.type", errorTypeOf(status))
      }
      span.end(clock.currentTimeNanosUnsafe(), exit)
      const line = { method, route, status, durationMs, refusal: MutableRef.get(hints.refusal) }
      return log(line, clock.currentTimeMillisUnsafe())
    }
    return { served: { ...ids, traceId: span.traceId }, span, end }
  }
})

const pathOf = (url: string) => {
  const query = url.indexOf("?")
  return query === -1 ? url : url.slice(0, query)
}

/** Returns the `error.type` of a failed request. A status of null means that the client disconnected before the response. */
const errorTypeOf = (status: number | null) => (status === null ? "client_left" : String(status))

/** Creates a function that returns the series of a metric with the given labels. Each series is created once and then reused. */
const makeSeries = <Labels extends ReadonlyArray<string | null | number>, M>(make: (...labels: Labels) => M) => {
  const known = new Map<string, M>()
  return (...labels: Labels): M => {
    const key = labels.join(" ")
    const series = known.get(key) ?? make(...labels)
    known.set(key, series)
    return series
  }
}

const activeOf = (method: string, scheme: string) =>
  HttpMetrics.activeRequests({ "http.request.method": method, "url.scheme": scheme })

/**
 * Returns the histogram of request durations with these labels. `served` is `live` if the response waited for an official source.
 * Otherwise it is empty.
 */
const durationOf = (method: string, route: string | null, status: number | null, scheme: string, served: string) =>
  HttpMetrics.requestDuration({
    "http.request.method": method,
    ...(route === null ? {} : { "http.route": route }),
    ...(status === null ? {} : { "http.response.status_code": String(status) }),
    "url.scheme": scheme,
    ...(status === null || status >= 500 ? { "error.type": errorTypeOf(status) } : {}),
    ...(served === "" ? {} : { "vatproof.served": served })
  })

const parentOf = ({ headers }: InboundRequest) =>
  headers["traceparent"] === undefined ? Option.none() : HttpTraceContext.w3c(Headers.fromInput(headers))

/** Returns the scheme of the client's request, as the trusted proxy next to the service reports it. */
const schemeOf = ({ headers }: InboundRequest, trustedProxies: number) =>
  trustedProxies > 0 && String(headers["x-forwarded-proto"]).split(",").at(-1)?.trim() === "https" ? "https" : "http"
