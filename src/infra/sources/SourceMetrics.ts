/** The metrics of the official sources. */
import { Effect, Exit, Metric, Option } from "effect"
import * as Metrics from "#domain/telemetry/Metrics.ts"
import type { SourceState } from "#domain/vat/Sources.ts"
import { FailureReason, type SourceFailure, SourceName } from "#domain/vat/Verdict.ts"

/** The path of questions at each source, below its base URL. Contains no VAT ID. */
export const checkPaths = { vies: "/check-vat-number", bzst: "/v1/abfrage" } as const

/** Labels: `http.request.method`, `server.address`, `server.port`, `http.response.status_code`, and `error.type` if it failed. */
const requestDuration = Metrics.histogram("http.client.request.duration", Metrics.durationBoundaries, {
  unit: "s",
  description: "Duration of an exchange with an official source"
})

/** Labels: `vatproof.source`, and `vatproof.outcome`, which is `answered` or the reason of a failure. */
export const attempts = Metrics.counter(
  "vatproof.source.attempts",
  {
    unit: "{attempt}",
    description: "Questions to an official source by outcome, including those that were not sent because its circuit is open"
  },
  { "vatproof.source": SourceName.literals, "vatproof.outcome": ["answered", "interrupted", ...FailureReason.literals] }
)

/** Label: `vatproof.source`. */
const sourceState = Metrics.gauge("vatproof.source.state", {
  unit: "{state}",
  description: "State of a source: 0 operational, 1 degraded, 2 unavailable"
})

/** Label: `vatproof.source`. */
const breakerOpen = Metrics.gauge("vatproof.source.breaker.open", {
  unit: "{circuit}",
  description: "1 while the circuit of a source is open, so that the source is not asked"
})

/** Label: `vatproof.source`. */
export const budget = Metrics.gauge("vatproof.source.budget", {
  unit: "{question}",
  description: "Daily budget (UTC) of questions to a source from all replicas together; absent without a budget"
})

/** Label: `vatproof.source`. */
export const budgetLeft = Metrics.gauge("vatproof.source.budget.left", {
  unit: "{question}",
  description: "Questions left in the daily budget of a source; absent without a budget"
})

export const requesterRejected = Metrics.gauge("vatproof.source.requester_rejected", {
  unit: "{requester}",
  description: "1 while VIES rejects REQUESTER_VAT_ID, so that it is not sent; absent without this setting"
})

export const failovers = Metrics.counter("vatproof.failovers", {
  unit: "{lookup}",
  description: "Look-ups that asked the BZSt because VIES had no verdict"
})()

const numberOf = { operational: 0, degraded: 1, unavailable: 2 }

/** Sets the gauges of a source. A source is unavailable exactly while its breaker or a pause rejects calls. */
export const noteState = (source: SourceName, state: SourceState) =>
  Effect.andThen(
    Metric.update(sourceState({ "vatproof.source": source }), numberOf[state]),
    Metric.update(breakerOpen({ "vatproof.source": source }), state === "unavailable" ? 1 : 0)
  )

/** Measures the exchanges with the server at `base` and annotates the attempt's span with the request and the status. */
export const measured = (base: URL | null) => {
  // Labels of an invalid base URL are empty. All requests to an invalid base URL fail.
  const { hostname, port, protocol } = base ?? { hostname: "", port: "", protocol: "" }
  const serverPort = Number(port === "" ? (protocol === "https:" ? 443 : 80) : port)
  const folder = base === null ? "" : `${base.origin}${base.pathname.replace(/\/+$/u, "")}`
  return <A, R>(
    { method, path }: { readonly method: string; readonly path: string },
    exchange: Effect.Effect<A, SourceFailure, R>,
    statusOf: (exchange: A) => number
  ) =>
    Effect.clockWith((clock) => {
      const started = clock.currentTimeNanosUnsafe()
      return Effect.onExit(exchange, (exit) => {
        const seconds = Number(clock.currentTimeNanosUnsafe() - started) / 1e9
        const status = Exit.isSuccess(exit) ? statusOf(exit.value) : null
        const failure = Option.getOrUndefined(Exit.findErrorOption(exit))
        const errorType = status !== null && status >= 400 ? String(status) : failure?.reason
        const server = { "http.request.method": method, "server.address": hostname }
        const labels = {
          ...server,
          "server.port": String(serverPort),
          ...(status === null ? {} : { "http.response.status_code": String(status) }),
          ...(errorType === undefined ? {} : { "error.type": errorType })
        }
        return Effect.andThen(
          Metric.update(requestDuration(labels), seconds),
          Effect.annotateCurrentSpan({
            ...server,
            "server.port": serverPort,
            "url.full": `${folder}${path}`,
            "url.template": path,
            ...(status === null ? {} : { "http.response.status_code": status })
          })
        )
      })
    })
}
