/**
 * Selects the traces to export. OpenTelemetry's samplers decide at the start of a trace. The processor decides again at the end
 * of a trace, so that it can export a trace with a failure or failover that the sampler has dropped.
 *
 * A trace begins with a request (a server span), a job (a consumer span) or a group commit (a span with links to its requests).
 * Other root spans are not recorded.
 */
import { type Context, type Link, type Span, SpanKind, trace, TraceFlags } from "@opentelemetry/api"
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  NoopSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type Sampler,
  SamplingDecision,
  type SpanProcessor,
  TraceIdRatioBasedSampler
} from "@opentelemetry/sdk-trace-base"
import { isKept } from "#infra/telemetry/ExportedSpan.ts"
import type { SamplerSettings } from "#infra/telemetry/TelemetrySettings.ts"

/**
 * Maximum number of spans of one trace, and maximum number of unsampled traces per second that are exported because of a failure
 * or failover.
 */
const maxSpans = 200
const maxKeptPerSecond = 50

const samplerOf = ({ name, ratio }: SamplerSettings): Sampler => {
  switch (name) {
    case "always_on":
      return new AlwaysOnSampler()
    case "always_off":
      return new AlwaysOffSampler()
    case "traceidratio":
      return new TraceIdRatioBasedSampler(ratio)
    case "parentbased_always_on":
      return new ParentBasedSampler({ root: new AlwaysOnSampler() })
    case "parentbased_always_off":
      return new ParentBasedSampler({ root: new AlwaysOffSampler() })
    case "parentbased_traceidratio":
      return new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) })
  }
}

const isSampled = ({ traceFlags }: { readonly traceFlags: TraceFlags }) => (traceFlags & TraceFlags.SAMPLED) !== 0

const begins = (kind: SpanKind, links: ReadonlyArray<Link>) =>
  kind === SpanKind.SERVER || kind === SpanKind.CONSUMER || links.length > 0

/** Returns the parent span if it belongs to this process. */
const localParent = (context: Context): Span | undefined => {
  const parent = trace.getSpan(context)
  return parent === undefined || parent.spanContext().isRemote === true ? undefined : parent
}

const decision = (sampled: boolean) => ({
  decision: sampled ? SamplingDecision.RECORD_AND_SAMPLED : SamplingDecision.RECORD
})

/** Records all spans of requests, jobs and group commits. Samples a job or group commit if it has a link to a sampled request. */
export const makeSampler = (settings: SamplerSettings): Sampler => {
  const sampler = samplerOf(settings)
  return {
    shouldSample: (context, traceId, name, kind, attributes, links) => {
      const parent = localParent(context)
      if (parent !== undefined && parent.isRecording()) return decision(isSampled(parent.spanContext()))
      if (parent !== undefined || !begins(kind, links)) return { decision: SamplingDecision.NOT_RECORD }
      if (links.some((link) => isSampled(link.context))) return decision(true)
      const sampling = sampler.shouldSample(context, traceId, name, kind, attributes, links)
      return decision(sampling.decision === SamplingDecision.RECORD_AND_SAMPLED)
    },
    toString: () => `tail(${sampler.toString()})`
  }
}

interface Trace {
  readonly root: object
  /** The ended spans of the trace; null once the root span has ended. */
  spans: Array<ReadableSpan> | null
  isKept: boolean
  isExported: boolean
}

const begin = (root: object): Trace => ({ root, spans: [], isKept: false, isExported: false })

export interface TailSamplingOptions {
  /** True if traces with a failure or failover are exported although the sampler dropped them. */
  readonly keepsFailures: boolean
  /** Exports the spans of a trace, with the root span last. Must return at once. */
  readonly emit: (spans: ReadonlyArray<ReadableSpan>) => void
}

export const makeProcessor = ({ emit, keepsFailures }: TailSamplingOptions): SpanProcessor => {
  // The traces with more than one span, by each of their spans. Most requests have one span, and need no entry.
  const traces = new WeakMap<object, Trace>()
  let currentSecond = 0
  let keptInSecond = 0

  const mayKeep = ({ endTime: [second] }: ReadableSpan) => {
    keptInSecond = second === currentSecond ? keptInSecond + 1 : 1
    currentSecond = second
    return keptInSecond <= maxKeptPerSecond
  }

  return {
    onStart: (span, context) => {
      const parent = localParent(context)
      if (parent === undefined) return
      const entry = traces.get(parent) ?? begin(parent)
      traces.set(parent, entry)
      traces.set(span, entry)
    },
    onEnd: (span) => {
      const entry = traces.get(span) ?? begin(span)
      entry.isKept ||= isKept(span)
      if (entry.root === span) {
        entry.isExported = isSampled(span.spanContext()) || (entry.isKept && keepsFailures && mayKeep(span))
        if (entry.isExported) emit([...(entry.spans ?? []), span])
        entry.spans = null
      } else if (entry.spans === null) {
        if (entry.isExported) emit([span])
      } else if (entry.spans.length < maxSpans) entry.spans.push(span)
    },
    forceFlush: () => nothing.forceFlush(),
    shutdown: () => nothing.shutdown()
  }
}

/** The processor has nothing to flush or shut down, because it passes ended spans to the queue of the exporter. */
const nothing = new NoopSpanProcessor()
