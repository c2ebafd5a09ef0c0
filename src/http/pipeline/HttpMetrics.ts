/** Metrics of HTTP requests, named by OpenTelemetry's semantic conventions for HTTP servers (read 2026-11). */
import * as Metrics from "#domain/telemetry/Metrics.ts"

/**
 * Labels: `http.request.method`, `http.route`, `http.response.status_code`, `url.scheme`, `error.type` of failed requests, and
 * `vatproof.served`, which is `live` if the response waited for an official source.
 */
export const requestDuration = Metrics.histogram("http.server.request.duration", Metrics.durationBoundaries, {
  unit: "s",
  description: "Duration of HTTP server requests"
})

/** Labels: `http.request.method` and `url.scheme`. */
export const activeRequests = Metrics.upDownCounter("http.server.active_requests", {
  unit: "{request}",
  description: "Number of active HTTP server requests"
})
