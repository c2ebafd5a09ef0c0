/**
 * Exports traces, metrics and logs over OTLP with OpenTelemetry's processors and exporters, managed by @effect/opentelemetry
 * (reasons: docs/decisions/0004-telemetry.md).
 *
 * An outage of the collector loses telemetry and affects nothing else: every queue is bounded and drops the excess, one export is
 * in flight at a time, and the shutdown waits at most 300 ms for the last one.
 */
import * as OtelLogger from "@effect/opentelemetry/OtelLogger"
import * as OtelMetrics from "@effect/opentelemetry/OtelMetrics"
import * as Resource from "@effect/opentelemetry/Resource"
import { BatchLogRecordProcessor } from "@opentelemetry/sdk-logs"
import { PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics"
import { BatchSpanProcessor } from "@opentelemetry/sdk-trace-base"
import { Duration, Effect, Layer, Logger, Option, Tracer } from "effect"
import * as ExportedSpan from "#infra/telemetry/ExportedSpan.ts"
import * as ExportHealth from "#infra/telemetry/ExportHealth.ts"
import * as OtlpExporters from "#infra/telemetry/OtlpExporters.ts"
import * as OtlpLogRecord from "#infra/telemetry/OtlpLogRecord.ts"
import type { Redaction } from "#infra/telemetry/Redaction.ts"
import type { ExportTarget, TelemetrySettings } from "#infra/telemetry/TelemetrySettings.ts"
import * as SpanTracer from "#infra/telemetry/SpanTracer.ts"

/** `resource` has OpenTelemetry's attributes of the process, its name and version among them. */
export interface PipelineOptions {
  readonly resource: Readonly<Record<string, string>>
  readonly redaction: Redaction
}

/** Limits of the queue and of one export: OpenTelemetry's defaults. */
const queue = { maxQueueSize: 2_048, maxExportBatchSize: 512 }
/** Timeout of the last export, so that a slow collector does not delay the shutdown. After it, the telemetry is lost. */
const shutdownTimeout = "300 millis"

export const layer = (settings: TelemetrySettings, options: PipelineOptions) =>
  Layer.unwrap(Effect.map(ExportHealth.make, (health) => layerWith(settings, options, health)))

const layerWith = (settings: TelemetrySettings, options: PipelineOptions, health: ExportHealth.ExportHealth) => {
  const { logs, metrics, traces } = settings
  const { "service.name": serviceName = "", "service.version": serviceVersion = "", ...attributes } = options.resource
  const resource = Resource.configToAttributes({ serviceName, serviceVersion, attributes })
  return Layer.mergeAll(
    Option.match(traces, { onNone: () => Layer.empty, onSome: (target) => layerTracer(settings, options, target, health) }),
    Option.match(metrics, { onNone: () => Layer.empty, onSome: (target) => layerMetrics(settings, target, health) }),
    Option.match(logs, { onNone: () => Layer.empty, onSome: (target) => layerLogger(settings, options, target, health) })
  ).pipe(Layer.provide(Resource.layerFromEnv(resource)))
}

/**
 * Timeout of a processor. It is longer than the exporter's timeout, because the processor would otherwise time out first and
 * report the failure itself.
 */
const exportTimeout = ({ timeout }: ExportTarget) => Duration.toMillis(timeout) + 5_000
const pace = ({ batchDelay }: TelemetrySettings) => ({ scheduledDelayMillis: Duration.toMillis(batchDelay) })

const layerTracer = (
  settings: TelemetrySettings,
  { redaction }: PipelineOptions,
  target: ExportTarget,
  health: ExportHealth.ExportHealth
) =>
  Layer.effect(
    Tracer.Tracer,
    Effect.gen(function* () {
      const exported = ExportedSpan.make(redaction)
      const processor = yield* Effect.acquireRelease(
        Effect.sync(
          () =>
            new BatchSpanProcessor(OtlpExporters.traces(target, health), {
              ...queue,
              ...pace(settings),
              exportTimeoutMillis: exportTimeout(target)
            })
        ),
        (made) =>
          Effect.timeoutOption(Effect.interruptible(Effect.ignore(Effect.tryPromise(() => made.shutdown()))), shutdownTimeout)
      )
      return yield* SpanTracer.make({
        sampler: settings.sampler,
        resource: yield* Resource.Resource,
        emit: (ended) => {
          for (const span of ended) processor.onEnd(exported(span))
        }
      })
    })
  )

const layerMetrics = ({ metricInterval }: TelemetrySettings, target: ExportTarget, health: ExportHealth.ExportHealth) => {
  const exportIntervalMillis = Duration.toMillis(metricInterval)
  const exportTimeoutMillis = Math.min(exportIntervalMillis, exportTimeout(target))
  const exporter = OtlpExporters.metrics(target, health)
  return OtelMetrics.layer(() => new PeriodicExportingMetricReader({ exporter, exportIntervalMillis, exportTimeoutMillis }), {
    shutdownTimeout
  })
}

const layerLogger = (
  settings: TelemetrySettings,
  { redaction }: PipelineOptions,
  target: ExportTarget,
  health: ExportHealth.ExportHealth
) => {
  const exporter = OtlpExporters.logs(target, health)
  const processor = new BatchLogRecordProcessor({
    exporter,
    ...queue,
    ...pace(settings),
    exportTimeoutMillis: exportTimeout(target)
  })
  return Logger.layer([OtlpLogRecord.make(redaction)], { mergeWithExisting: true }).pipe(
    Layer.provide(OtelLogger.layerLoggerProvider(processor, { shutdownTimeout }))
  )
}
