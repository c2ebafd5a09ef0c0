/**
 * Effect's tracer on OpenTelemetry's SDK, by @effect/opentelemetry. It omits the context hook of @effect/opentelemetry. The hook
 * costs as much as the spans, and only other instrumentation needs it (docs/decisions/0004-telemetry.md).
 */
import * as OtelTracer from "@effect/opentelemetry/OtelTracer"
import { ROOT_CONTEXT, SpanKind } from "@opentelemetry/api"
import { BasicTracerProvider, type IdGenerator, RandomIdGenerator, SamplingDecision } from "@opentelemetry/sdk-trace-base"
import type { Resource } from "@opentelemetry/resources"
import { Cause, Effect, Exit, Option, Predicate, Tracer } from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { DeferredSpan, type SpanIds, type SpanOptions } from "#infra/telemetry/DeferredSpan.ts"
import { defectAttribute } from "#infra/telemetry/ExportedSpan.ts"
import * as TailSampling from "#infra/telemetry/TailSampling.ts"
import type { SamplerSettings } from "#infra/telemetry/TelemetrySettings.ts"

export interface SpanTracerOptions {
  readonly sampler: SamplerSettings
  readonly resource: Resource
  readonly emit: TailSampling.TailSamplingOptions["emit"]
}

export const make = ({ emit, resource, sampler: settings }: SpanTracerOptions): Effect.Effect<Tracer.Tracer> => {
  const processor = TailSampling.makeProcessor({ keepsFailures: settings.name !== "always_off", emit })
  const sampler = TailSampling.makeSampler(settings)
  const random = new RandomIdGenerator()
  /** The ids of the next span. The SDK takes the ids of a span only from its id generator. */
  let nextIds: SpanIds | undefined
  const idGenerator: IdGenerator = {
    generateTraceId: () => nextIds?.traceId ?? random.generateTraceId(),
    generateSpanId: () => nextIds?.spanId ?? random.generateSpanId()
  }
  const provider = new BasicTracerProvider({ resource, sampler, idGenerator, spanProcessors: [processor] })

  return OtelTracer.make.pipe(
    Effect.map((tracer) => {
      const create = (options: SpanOptions) => namingFailures(tracer.span({ ...options, parent: recordedParent(options) }))
      const createAs = (options: SpanOptions, ids: SpanIds) => {
        nextIds = ids
        const span = create(options)
        nextIds = undefined
        return span
      }
      /** Begins the trace of a request. The span of an unsampled trace is deferred. */
      const begin = (options: SpanOptions) => {
        const ids = { traceId: random.generateTraceId(), spanId: random.generateSpanId() }
        const { decision } = sampler.shouldSample(ROOT_CONTEXT, ids.traceId, options.name, SpanKind.SERVER, {}, [])
        return decision === SamplingDecision.RECORD_AND_SAMPLED
          ? createAs(options, ids)
          : new DeferredSpan(options, ids, createAs)
      }
      return Tracer.make({ span: (options) => (beginsRequest(options) ? begin(options) : create(options)) })
    }),
    Effect.provideService(OtelTracer.OtelTracer, provider.getTracer("vatproof"))
  )
}

const beginsRequest = ({ kind, links, parent, root }: SpanOptions) =>
  kind === "server" && links.length === 0 && (root || Option.isNone(parent))

/** Returns the parent of a span. If the parent is deferred, creates its real span, because the SDK needs a recorded parent. */
const recordedParent = ({ parent }: SpanOptions) =>
  Option.map(parent, (span) => (span instanceof DeferredSpan ? span.recorded : span))

/** Records the name of a failure. The library would record its message and stack, which may contain personal data. */
const namingFailures = (span: Tracer.Span): Tracer.Span => {
  const end = span.end
  span.end = (endTime, exit) => {
    if (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)) {
      if (!span.attributes.has("error.type")) span.attribute("error.type", errorType(exit.cause))
      if (Cause.hasDies(exit.cause)) span.attribute(defectAttribute, true)
    }
    end.call(span, endTime, Exit.void)
  }
  return span
}

const errorType = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  if (isSqlError(error)) return sqlStateOf(error) ?? error.reason._tag
  if (Predicate.hasProperty(error, "_tag") && Predicate.isString(error._tag)) return error._tag
  return Predicate.isError(error) ? error.name : "defect"
}

/** Returns PostgreSQL's error code of five characters; undefined if the connection failed. */
const sqlStateOf = ({ reason: { cause } }: SqlError): string | undefined => {
  const code = Predicate.hasProperty(cause, "code") ? cause.code : undefined
  return Predicate.isString(code) && /^[0-9A-Z]{5}$/u.test(code) ? code : undefined
}
