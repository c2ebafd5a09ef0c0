/** Telemetry for an OpenTelemetry collector. Without a configured endpoint, no exporter is loaded, and a trace has only an id. */
import { randomUUID } from "node:crypto"
import { hostname } from "node:os"
import { Effect, Layer, Option, Tracer } from "effect"
import type { PipelineOptions } from "#infra/telemetry/OtlpPipeline.ts"
import { TargetInfo } from "#infra/telemetry/PrometheusText.ts"
import type { TelemetrySettings } from "#infra/telemetry/TelemetrySettings.ts"

export const isOn = ({ logs, metrics, traces }: TelemetrySettings): boolean =>
  Option.isSome(traces) || Option.isSome(metrics) || Option.isSome(logs)

/** `serviceName` is used if OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES contain no service name. */
export interface TelemetryOptions extends Omit<PipelineOptions, "resource"> {
  readonly serviceName: string
  readonly serviceVersion: string
}

/** The attributes of the process; `service.instance.id` distinguishes replicas. */
const resourceOf = ({ resource, serviceName }: TelemetrySettings, options: TelemetryOptions): PipelineOptions["resource"] => ({
  "service.name": options.serviceName,
  "service.version": options.serviceVersion,
  "service.instance.id": randomUUID(),
  "host.name": hostname(),
  ...resource,
  ...(Option.isNone(serviceName) ? {} : { "service.name": serviceName.value })
})

/** Exports telemetry. Provide this layer last, so that it starts before the layers that it observes and ends after them. */
export const layer = (settings: TelemetrySettings, options: TelemetryOptions): Layer.Layer<never> => {
  const resource = resourceOf(settings, options)
  return Layer.merge(exporting(settings, { redaction: options.redaction, resource }), Layer.succeed(TargetInfo, resource))
}

const exporting = (settings: TelemetrySettings, options: PipelineOptions): Layer.Layer<never> =>
  isOn(settings)
    ? Layer.unwrap(
        Effect.promise(() => import("#infra/telemetry/OtlpPipeline.ts")).pipe(
          Effect.map((pipeline) => Layer.effectDiscard(Effect.void).pipe(Layer.provideMerge(pipeline.layer(settings, options))))
        )
      )
    : Layer.succeed(Tracer.Tracer, notSampling)

/** Creates spans that are never sampled. They only provide the trace ids in log lines and responses. */
const notSampling = Tracer.make({ span: (options) => new Tracer.NativeSpan({ ...options, sampled: false }) })
