/**
 * The export of traces, metrics and logs over OTLP: OpenTelemetry's own processors and exporters, made and ended by @effect/opentelemetry
 * (docs/decisions/0004-telemetry.md says why these).
 *
 * A collector that is away or hangs costs nothing but what was to be exported: every queue has a bound and drops what comes after it,
 * one export is under way at a time, and the end of the service waits for the last one for 300 ms.
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

/** `resource` has OpenTelemetry's attributes of what tells all this, its name and version among them. */
export interface PipelineOptions {
  readonly resource: Readonly<Record<string, string>>
  readonly redaction: Redaction
}

/** Bounds of what waits for an export, and of what one export takes: OpenTelemetry's own defaults. */
const queue = { maxQueueSize: 2_048, maxExportBatchSize: 512 }
/** A collector that takes longer loses the last telemetry: a stop must not wait for it. */
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

/** An exporter gives up by itself in time; a processor that gave up before it would take that for a failure of its own. */
const patience = ({ timeout }: ExportTarget) => Duration.toMillis(timeout) + 5_000
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
              exportTimeoutMillis: patience(target)
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
  const exportTimeoutMillis = Math.min(exportIntervalMillis, patience(target))
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
  const processor = new BatchLogRecordProcessor({ exporter, ...queue, ...pace(settings), exportTimeoutMillis: patience(target) })
  return Logger.layer([OtlpLogRecord.make(redaction)], { mergeWithExisting: true }).pipe(
    Layer.provide(OtelLogger.layerLoggerProvider(processor, { shutdownTimeout }))
  )
}
