/** Creates OpenTelemetry's exporters for the target and protocol of each signal. */
import { OTLPLogExporter as JsonLogExporter } from "@opentelemetry/exporter-logs-otlp-http"
import { OTLPLogExporter as ProtobufLogExporter } from "@opentelemetry/exporter-logs-otlp-proto"
import { OTLPMetricExporter as JsonMetricExporter } from "@opentelemetry/exporter-metrics-otlp-http"
import { OTLPMetricExporter as ProtobufMetricExporter } from "@opentelemetry/exporter-metrics-otlp-proto"
import { OTLPTraceExporter as JsonTraceExporter } from "@opentelemetry/exporter-trace-otlp-http"
import { OTLPTraceExporter as ProtobufTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto"
import { CompressionAlgorithm, type OTLPExporterNodeConfigBase } from "@opentelemetry/otlp-exporter-base"
import {
  AggregationTemporality,
  type MetricData,
  type PushMetricExporter,
  type ResourceMetrics
} from "@opentelemetry/sdk-metrics"
import { Duration, Record, Redacted } from "effect"
import type { ExportHealth, Signal } from "#infra/telemetry/ExportHealth.ts"
import type { ExportTarget } from "#infra/telemetry/TelemetrySettings.ts"

/** Maximum number of concurrent exports per signal. There can be two if the first has timed out but is still in flight. */
const concurrencyLimit = 2

const configOf = ({ compression, headers, timeout, url }: ExportTarget): OTLPExporterNodeConfigBase => ({
  url,
  headers: Record.map(headers, (value) => Redacted.value(value)),
  timeoutMillis: Duration.toMillis(timeout),
  compression: compression === "gzip" ? CompressionAlgorithm.GZIP : CompressionAlgorithm.NONE,
  concurrencyLimit
})

/** The common interface of trace, metric and log exporters. */
interface Exporter<Items> {
  readonly export: (items: Items, done: (result: ExportResult) => void) => void
  readonly forceFlush: () => Promise<void>
  readonly shutdown: () => Promise<void>
}

type ExportResult = Parameters<Parameters<PushMetricExporter["export"]>[1]>[0]

/** 0 is OpenTelemetry's code for success. */
const taken: ExportResult = { code: 0 }

/**
 * Reports success to the processor and the real result to ExportHealth, because OpenTelemetry's processors would turn a failure
 * of the last export into a failure of the service's shutdown.
 */
const watched = <Items>(signal: Signal, health: ExportHealth, exporter: Exporter<Items>) => ({
  export: (items: Items, done: (result: ExportResult) => void) =>
    exporter.export(items, (result) => {
      health.note(signal, result.error)
      done(taken)
    }),
  forceFlush: () => exporter.forceFlush(),
  shutdown: () => exporter.shutdown()
})

export const traces = (target: ExportTarget, health: ExportHealth) =>
  watched(
    "traces",
    health,
    target.protocol === "http/json" ? new JsonTraceExporter(configOf(target)) : new ProtobufTraceExporter(configOf(target))
  )

export const logs = (target: ExportTarget, health: ExportHealth) =>
  watched(
    "logs",
    health,
    target.protocol === "http/json" ? new JsonLogExporter(configOf(target)) : new ProtobufLogExporter(configOf(target))
  )

export const metrics = (target: ExportTarget, health: ExportHealth): PushMetricExporter => {
  const exporter =
    target.protocol === "http/json" ? new JsonMetricExporter(configOf(target)) : new ProtobufMetricExporter(configOf(target))
  const { export: send, ...rest } = watched("metrics", health, exporter)
  return {
    ...rest,
    export: (collected, done) => send(withoutUnits(collected), done),
    selectAggregationTemporality: () => AggregationTemporality.CUMULATIVE
  }
}

/**
 * Removes the attribute `unit`, which Effect adds to each data point. The descriptor of the metric already has the unit, and the
 * attribute would be an additional dimension.
 */
const withoutUnits = (collected: ResourceMetrics): ResourceMetrics => ({
  resource: collected.resource,
  scopeMetrics: collected.scopeMetrics.map(({ metrics: all, scope }) => ({ scope, metrics: all.map(withoutUnit) }))
})

const withoutUnit = (metric: MetricData): MetricData => {
  for (const point of metric.dataPoints) delete point.attributes["unit"]
  return metric
}
