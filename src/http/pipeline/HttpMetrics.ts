/** Rate, errors and duration of requests, by OpenTelemetry's conventions for HTTP servers (read 2026-11). */
import * as Metrics from "#domain/kernel/Metrics.ts"

/**
 * By `http.request.method`, `http.route`, `http.response.status_code`, `url.scheme`, from 500 on `error.type`, and `vatproof.served`: `live` where the
 * response waited for an official source.
 */
export const requestDuration = Metrics.histogram("http.server.request.duration", Metrics.durationBoundaries, {
  unit: "s",
  description: "Duration of HTTP server requests"
})

/** By `http.request.method` and `url.scheme`. */
export const activeRequests = Metrics.upDownCounter("http.server.active_requests", {
  unit: "{request}",
  description: "Number of active HTTP server requests"
})
