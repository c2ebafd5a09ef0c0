/** Rate, errors and duration of what is served, by OpenTelemetry's conventions for HTTP servers (read 2026-11). */
import * as Instrument from "#domain/kernel/Metrics.ts"

/**
 * By `http.request.method`, `http.route`, `http.response.status_code`, `url.scheme`, from 500 on `error.type`, and `vatproof.served`: `live` where the
 * response waited for an official source.
 */
export const requestDuration = Instrument.histogram("http.server.request.duration", Instrument.durationBoundaries, {
  unit: "s",
  description: "Duration of HTTP server requests"
})

/** By `http.request.method` and `url.scheme`. */
export const activeRequests = Instrument.upDownCounter("http.server.active_requests", {
  unit: "{request}",
  description: "Number of active HTTP server requests"
})
