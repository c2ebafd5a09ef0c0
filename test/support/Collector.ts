/**
 * Runs an independent OpenTelemetry collector (@elastic/mockotlpserver) and keeps the telemetry that it receives. It uses global
 * diagnostics channels, so a test file has only one collector. OTEL_SERVICE_NAME identifies the service of each span.
 */
import { MockOtlpServer, normalizeLogs, normalizeMetrics, normalizeTrace } from "@elastic/mockotlpserver"
import { Array as Arr, Context, Effect, Layer, Schedule, Schema } from "effect"

const Attributes = Schema.Record(Schema.String, Schema.Unknown)
const Resource = Schema.Struct({ attributes: Attributes })

/** A received span. Ids are hexadecimal; `kind` and the status code are names of the OTLP protocol. */
export const ReceivedSpan = Schema.Struct({
  traceId: Schema.String,
  spanId: Schema.String,
  parentSpanId: Schema.optionalKey(Schema.NullOr(Schema.String)),
  name: Schema.String,
  kind: Schema.String,
  startTimeUnixNano: Schema.String,
  endTimeUnixNano: Schema.String,
  attributes: Schema.optionalKey(Attributes),
  status: Schema.optionalKey(Schema.Struct({ code: Schema.optionalKey(Schema.Unknown) })),
  links: Schema.optionalKey(Schema.Array(Schema.Struct({ traceId: Schema.String, spanId: Schema.String })))
})
export type ReceivedSpan = typeof ReceivedSpan.Type

const Point = Schema.Struct({ attributes: Schema.optionalKey(Attributes) })
const Points = Schema.optionalKey(
  Schema.Struct({ dataPoints: Schema.Array(Point), isMonotonic: Schema.optionalKey(Schema.Boolean) })
)

export const ReceivedMetric = Schema.Struct({
  name: Schema.String,
  unit: Schema.optionalKey(Schema.String),
  description: Schema.optionalKey(Schema.String),
  sum: Points,
  gauge: Points,
  histogram: Points
})
export type ReceivedMetric = typeof ReceivedMetric.Type

export const ReceivedLog = Schema.Struct({
  body: Schema.Unknown,
  severityText: Schema.optionalKey(Schema.String),
  traceId: Schema.optionalKey(Schema.NullOr(Schema.String)),
  spanId: Schema.optionalKey(Schema.NullOr(Schema.String)),
  attributes: Schema.optionalKey(Attributes)
})

const Traces = Schema.Struct({
  resourceSpans: Schema.Array(
    Schema.Struct({ resource: Resource, scopeSpans: Schema.Array(Schema.Struct({ spans: Schema.Array(ReceivedSpan) })) })
  )
})
const Metrics = Schema.Struct({
  resourceMetrics: Schema.Array(
    Schema.Struct({ resource: Resource, scopeMetrics: Schema.Array(Schema.Struct({ metrics: Schema.Array(ReceivedMetric) })) })
  )
})
const Logs = Schema.Struct({
  resourceLogs: Schema.Array(
    Schema.Struct({ resource: Resource, scopeLogs: Schema.Array(Schema.Struct({ logRecords: Schema.Array(ReceivedLog) })) })
  )
})

const decodeTraces = Schema.decodeUnknownSync(Traces)
const decodeMetrics = Schema.decodeUnknownSync(Metrics)
const decodeLogs = Schema.decodeUnknownSync(Logs)

const make = Effect.gen(function* () {
  const traces: Array<typeof Traces.Type> = []
  const metrics: Array<typeof Metrics.Type> = []
  const logs: Array<typeof Logs.Type> = []
  const received: Array<string> = []
  const keep =
    <A>(into: Array<A>, decode: (value: unknown) => A, normalize: (request: unknown) => unknown) =>
    (request: unknown) => {
      const normal = normalize(request)
      received.push(JSON.stringify(normal))
      into.push(decode(normal))
    }
  const server = yield* Effect.acquireRelease(
    Effect.promise(() => {
      const started = new MockOtlpServer({
        services: ["http"],
        httpHostname: "127.0.0.1",
        httpPort: 0,
        logLevel: "fatal",
        onTrace: keep(traces, decodeTraces, normalizeTrace),
        onMetrics: keep(metrics, decodeMetrics, normalizeMetrics),
        onLogs: keep(logs, decodeLogs, normalizeLogs),
        onRequest: (request) => received.push(JSON.stringify(request))
      })
      return started.start().then(() => started)
    }),
    (started) => Effect.promise(() => started.close())
  )

  const isOf = (service: string) => (part: { readonly resource: typeof Resource.Type }) =>
    part.resource.attributes["service.name"] === service

  /** Returns the spans that one service has sent so far. */
  const spansOf = (service: string) =>
    traces.flatMap((one) =>
      one.resourceSpans.filter(isOf(service)).flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
    )
  const metricsOf = (service: string) =>
    metrics.flatMap((one) =>
      one.resourceMetrics.filter(isOf(service)).flatMap((part) => part.scopeMetrics.flatMap((scope) => scope.metrics))
    )
  const logsOf = (service: string) =>
    logs.flatMap((one) =>
      one.resourceLogs.filter(isOf(service)).flatMap((part) => part.scopeLogs.flatMap((scope) => scope.logRecords))
    )

  /** Repeats `look` until it returns a value. */
  const until = <A>(look: () => A | undefined) =>
    Effect.sync(look).pipe(
      Effect.repeat({ schedule: Schedule.spaced("25 millis"), until: (found) => found !== undefined }),
      Effect.flatMap((found) => Effect.fromNullishOr(found))
    )

  return {
    url: server.httpUrl.origin,
    spansOf,
    metricsOf,
    logsOf,
    until,
    /** Waits until the span `rootName` of a trace has arrived. Returns all spans of the trace. */
    trace: (service: string, traceId: string, rootName: string) =>
      until(() => {
        const spans = spansOf(service).filter((span) => span.traceId === traceId)
        return spans.some(({ name }) => name === rootName) && Arr.isArrayNonEmpty(spans) ? spans : undefined
      }),
    /** All received data, including headers, as text. */
    everything: Effect.sync(() => received.join("\n"))
  }
})

export class Collector extends Context.Service<Collector, Effect.Success<typeof make>>()("vatproof/test/Collector") {
  static readonly layer = Layer.effect(Collector, make)
}

/** Returns settings with which a service exports all telemetry to the collector, with short delays. */
export const settingsFor = (url: string, service: string): Readonly<Record<string, string>> => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: url,
  OTEL_SERVICE_NAME: service,
  OTEL_BSP_SCHEDULE_DELAY: "50",
  OTEL_METRIC_EXPORT_INTERVAL: "500"
})
