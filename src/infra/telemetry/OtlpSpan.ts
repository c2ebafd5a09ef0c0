/** A recorded span in the form that OpenTelemetry's processors take. */
import { type Attributes, type HrTime, type SpanContext, SpanKind, SpanStatusCode, TraceFlags } from "@opentelemetry/api"
import type { Resource } from "@opentelemetry/resources"
import type { ReadableSpan } from "@opentelemetry/sdk-trace-base"
import { Option, type Tracer } from "effect"
import type { Redaction } from "#infra/telemetry/Redaction.ts"
import type { RecordedSpan } from "#infra/telemetry/TraceRecorder.ts"

const kinds = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER
}

const instrumentationScope = { name: "vatproof" }

/** What is exported is sampled, whatever its parent's flags said: the decision was made at its end. */
const contextOf = (span: Tracer.AnySpan | RecordedSpan, isRemote: boolean): SpanContext => ({
  traceId: span.traceId,
  spanId: span.spanId,
  traceFlags: TraceFlags.SAMPLED,
  isRemote
})

const timeOf = (nanos: bigint): HrTime => [Number(nanos / 1_000_000_000n), Number(nanos % 1_000_000_000n)]

/** Attributes repeat themselves (routes, methods, outcomes), and looking for secrets costs more than all the rest: this many are remembered. */
const maxRemembered = 2_000

const remembering = (redaction: Redaction) => {
  const known = new Map<string, string>()
  return (text: string): string => {
    const told = known.get(text) ?? redaction.text(text)
    if (known.size < maxRemembered) known.set(text, told)
    return told
  }
}

export const make = (resource: Resource, redaction: Redaction) => {
  const redacted = remembering(redaction)
  const attributesOf = (entries: Iterable<readonly [string, unknown]>): Attributes => {
    const attributes: Attributes = {}
    for (const [name, value] of entries) {
      if (typeof value === "string") attributes[name] = redacted(value)
      else if (typeof value === "number" || typeof value === "boolean") attributes[name] = value
    }
    return attributes
  }

  return (span: RecordedSpan): ReadableSpan => {
    const context = contextOf(span, false)
    const parent = Option.map(span.parent, (parentSpan) => contextOf(parentSpan, parentSpan._tag === "ExternalSpan"))
    return {
      name: span.name,
      kind: kinds[span.kind],
      spanContext: () => context,
      ...(Option.isNone(parent) ? {} : { parentSpanContext: parent.value }),
      startTime: timeOf(span.startTime),
      endTime: timeOf(span.endTime),
      duration: timeOf(span.endTime - span.startTime),
      status: { code: span.failed ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
      attributes: attributesOf(span.attributes),
      links: span.links.map((link) => ({
        context: contextOf(link.span, link.span._tag === "ExternalSpan"),
        attributes: attributesOf(Object.entries(link.attributes))
      })),
      events: [],
      ended: true,
      resource,
      instrumentationScope,
      droppedAttributesCount: 0,
      droppedEventsCount: 0,
      droppedLinksCount: 0
    }
  }
}
