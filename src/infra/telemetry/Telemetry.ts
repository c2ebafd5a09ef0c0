/**
 * What the service tells about itself to an OpenTelemetry collector. Without an endpoint in the settings nothing of it is even loaded, and
 * a trace is no more than its id.
 */
import { randomUUID } from "node:crypto"
import { Effect, Layer, Option, Tracer } from "effect"
import type { PipelineOptions } from "#infra/telemetry/OtlpPipeline.ts"
import type { TelemetrySettings } from "#infra/telemetry/TelemetrySettings.ts"
import * as TraceRecorder from "#infra/telemetry/TraceRecorder.ts"

export const isOn = ({ logs, metrics, traces }: TelemetrySettings): boolean =>
  Option.isSome(traces) || Option.isSome(metrics) || Option.isSome(logs)

/** Must be provided last, so that it is there before everything it watches and ends after it. */
export const layer = (settings: TelemetrySettings, options: Omit<PipelineOptions, "instanceId">): Layer.Layer<never> =>
  isOn(settings)
    ? Layer.unwrap(
        Effect.promise(() => import("#infra/telemetry/OtlpPipeline.ts")).pipe(
          Effect.map((pipeline) =>
            Layer.effectDiscard(Effect.void).pipe(
              Layer.provideMerge(pipeline.layer(settings, { ...options, instanceId: randomUUID() }))
            )
          )
        )
      )
    : Layer.succeed(Tracer.Tracer, TraceRecorder.make({ sampler: () => false, keepsFailures: false, emit: () => undefined }))
