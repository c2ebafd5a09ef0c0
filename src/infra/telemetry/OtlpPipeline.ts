/**
 * The export of traces, metrics and logs over OTLP: OpenTelemetry's own processors and exporters, made and ended by @effect/opentelemetry
 * (docs/decisions/0005-telemetry.md says why these, and why the tracer is our own).
 *
 * A collector that is away or hangs costs nothing but what was to be exported: every queue has a bound and drops what comes after it,
 * one export is under way at a time, and the end of the service waits for the last one for two seconds.
 */
import * as NodeSdk from "@effect/opentelemetry/NodeSdk"
import * as OtelLogger from "@effect/opentelemetry/OtelLogger"
import * as Resource from "@effect/opentelemetry/Resource"
import { BatchLogRecordProcessor } from "@opentelemetry/sdk-logs"
import { PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics"
import { BatchSpanProcessor, type SpanProcessor } from "@opentelemetry/sdk-trace-base"
import { Duration, Effect, Layer, Logger, Option, Tracer } from "effect"
import * as ExportHealth from "#infra/telemetry/ExportHealth.ts"
import * as OtlpExporters from "#infra/telemetry/OtlpExporters.ts"
import * as OtlpLogRecord from "#infra/telemetry/OtlpLogRecord.ts"
import * as OtlpSpan from "#infra/telemetry/OtlpSpan.ts"
import type { Redaction } from "#infra/telemetry/Redaction.ts"
import * as Sampler from "#infra/telemetry/Sampler.ts"
import type { TelemetrySettings } from "#infra/telemetry/TelemetrySettings.ts"
import * as TraceRecorder from "#infra/telemetry/TraceRecorder.ts"

/** `serviceName` is used where OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES name none; `instanceId` tells replicas apart. */
export interface PipelineOptions {
  readonly serviceName: string
  readonly serviceVersion: string
  readonly instanceId: string
  readonly redaction: Redaction
}

/** Bounds of what waits for an export, and of what one export takes: OpenTelemetry's own defaults. */
const queue = { maxQueueSize: 2_048, maxExportBatchSize: 512 }
const shutdownTimeout = "2 seconds"

export const layer = (settings: TelemetrySettings, options: PipelineOptions) =>
  Layer.unwrap(Effect.map(ExportHealth.make, (health) => layerWith(settings, options, health)))

const layerWith = (settings: TelemetrySettings, options: PipelineOptions, health: ExportHealth.ExportHealth) => {
  const resource = {
    serviceName: Option.getOrElse(settings.serviceName, () => settings.resource["service.name"] ?? options.serviceName),
    serviceVersion: settings.resource["service.version"] ?? options.serviceVersion,
    attributes: { "service.instance.id": options.instanceId, ...settings.resource }
  }
  const spans = Option.map(settings.traces, (target) => {
    const exporter = OtlpExporters.traces(target, health)
    return new BatchSpanProcessor(exporter, { ...queue, ...pace(settings), exportTimeoutMillis: patience(target) })
  })
  const metrics = Option.map(settings.metrics, (target) => {
    const exportIntervalMillis = millis(settings.metricInterval)
    const exportTimeoutMillis = Math.min(exportIntervalMillis, patience(target))
    return new PeriodicExportingMetricReader({
      exporter: OtlpExporters.metrics(target, health),
      exportIntervalMillis,
      exportTimeoutMillis
    })
  })
  const sdk = NodeSdk.layer(() => ({
    resource,
    shutdownTimeout,
    spanProcessor: Option.getOrUndefined(spans),
    metricReader: Option.getOrUndefined(metrics)
  }))
  const tracer = Option.match(spans, {
    onNone: () => Layer.empty,
    onSome: (processor) => layerTracer(settings, options, processor)
  })
  const logger = Option.match(settings.logs, {
    onNone: () => Layer.empty,
    onSome: (target) => layerLogger(settings, options, OtlpExporters.logs(target, health), target.timeout)
  })
  // What stands first wins over the tracer that the SDK's layer brings along.
  return Layer.merge(tracer, logger).pipe(Layer.provideMerge(sdk))
}

/** An exporter gives up by itself in time; a processor that gave up before it would take that for a failure of its own. */
const patience = ({ timeout }: { readonly timeout: Duration.Duration }) => millis(timeout) + 5_000
const millis = (duration: Duration.Duration) => Duration.toMillis(duration)
const pace = ({ batchDelay }: TelemetrySettings) => ({ scheduledDelayMillis: millis(batchDelay) })

const layerTracer = (settings: TelemetrySettings, { redaction }: PipelineOptions, processor: SpanProcessor) =>
  Layer.effect(
    Tracer.Tracer,
    Effect.map(Resource.Resource, (resource) => {
      const toOtlp = OtlpSpan.make(resource, redaction)
      return TraceRecorder.make({
        sampler: Sampler.make(settings.sampler),
        keepsFailures: settings.sampler.name !== "always_off",
        emit: (ended) => {
          for (const span of ended) processor.onEnd(toOtlp(span))
        }
      })
    })
  )

const layerLogger = (
  settings: TelemetrySettings,
  { redaction }: PipelineOptions,
  exporter: ReturnType<typeof OtlpExporters.logs>,
  timeout: Duration.Duration
) => {
  const processor = new BatchLogRecordProcessor({
    exporter,
    ...queue,
    ...pace(settings),
    exportTimeoutMillis: patience({ timeout })
  })
  return Logger.layer([OtlpLogRecord.make(redaction)], { mergeWithExisting: true }).pipe(
    Layer.provide(OtelLogger.layerLoggerProvider(processor, { shutdownTimeout }))
  )
}
