/** What the official sources are measured by. */
import { Clock, Effect, Exit, Metric, Option, type Tracer } from "effect"
import * as Instrument from "#domain/Instrument.ts"
import type { SourceState } from "#domain/Sources.ts"
import type { SourceFailure, SourceName } from "#domain/Verdict.ts"

/** Seconds: some member states take longer than the conventions' ten. */
const sourceBoundaries = [...Instrument.durationBoundaries, 15, 20, 30]

/** By `http.request.method`, `server.address`, `server.port`, `http.response.status_code`, and `error.type` where it failed. */
const requestDuration = Instrument.histogram("http.client.request.duration", sourceBoundaries, {
  unit: "s",
  description: "Time an exchange with an official source took"
})

/** By `vatproof.source` and `vatproof.outcome`: `answered` or the reason of a failure. */
export const attempts = Instrument.counter("vatproof.source.attempts", {
  unit: "{attempt}",
  description: "Questions to an official source by their outcome, also those that were not sent because its circuit is open"
})

/** By `vatproof.source`. */
const sourceState = Instrument.gauge("vatproof.source.state", {
  unit: "{state}",
  description: "How a source is: 0 operational, 1 degraded, 2 unavailable"
})

/** By `vatproof.source`. */
const breakerOpen = Instrument.gauge("vatproof.source.breaker.open", {
  unit: "{circuit}",
  description: "1 while the circuit of a source is open and it is not asked"
})

export const failovers = Instrument.counter("vatproof.failovers", {
  unit: "{lookup}",
  description: "Look-ups that asked the BZSt because VIES had no verdict"
})()

const numberOf = { operational: 0, degraded: 1, unavailable: 2 }

/** Sets the gauges of a source: it is unavailable exactly while it is not asked. */
export const noteState = (source: SourceName, state: SourceState) =>
  Effect.andThen(
    Metric.update(sourceState({ "vatproof.source": source }), numberOf[state]),
    Metric.update(breakerOpen({ "vatproof.source": source }), state === "unavailable" ? 1 : 0)
  )

/** Measures an exchange and tells the attempt's span where it went and what came back; its path, which names a VAT ID, stays out. */
export const measured = <A>(method: string, baseUrl: string, statusOf: (exchange: A) => number) => {
  // An address that is none fails when it is asked; here it only has no name.
  const { hostname, port, protocol } = URL.parse(baseUrl) ?? { hostname: "", port: "", protocol: "" }
  const server = { "http.request.method": method, "server.address": hostname }
  const serverPort = Number(port === "" ? (protocol === "https:" ? 443 : 80) : port)
  return <R>(exchange: Effect.Effect<A, SourceFailure, R>): Effect.Effect<A, SourceFailure, R> =>
    Effect.flatMap(Clock.currentTimeNanos, (started) =>
      Effect.onExit(
        exchange,
        Effect.fnUntraced(function* (exit) {
          const seconds = Number((yield* Clock.currentTimeNanos) - started) / 1e9
          const status = Exit.isSuccess(exit) ? statusOf(exit.value) : null
          const failure = Option.getOrUndefined(Exit.findErrorOption(exit))
          const errorType = status !== null && status >= 400 ? String(status) : failure?.reason
          const labels = {
            ...server,
            "server.port": String(serverPort),
            ...(status === null ? {} : { "http.response.status_code": String(status) }),
            ...(errorType === undefined ? {} : { "error.type": errorType })
          }
          yield* Metric.update(requestDuration(labels), seconds)
          const span = clientOf(yield* Effect.option(Effect.currentSpan))
          for (const [name, value] of Object.entries(server)) span?.attribute(name, value)
          span?.attribute("server.port", serverPort)
          if (status !== null) span?.attribute("http.response.status_code", status)
        })
      )
    )
}

/** The nearest span of an attempt: functions in between have spans of their own. */
const clientOf = (current: Option.Option<Tracer.AnySpan>): Tracer.Span | undefined => {
  const span = Option.getOrUndefined(current)
  if (span?._tag !== "Span") return undefined
  return span.kind === "client" ? span : clientOf(span.parent)
}
