/**
 * A span as it is exported. Only the attributes listed here leave the process, because libraries add paths, addresses and
 * statements that contain VAT IDs and names of persons.
 */
import { type Attributes, type AttributeValue, type SpanContext, SpanKind, SpanStatusCode, TraceFlags } from "@opentelemetry/api"
import type { ReadableSpan } from "@opentelemetry/sdk-trace-base"
import type { Redaction } from "#infra/telemetry/Redaction.ts"
import * as StatementName from "#infra/telemetry/StatementName.ts"

/** Maximum length of an exported attribute value, in characters. */
const maxLength = 200

/**
 * The exported attributes of OpenTelemetry's semantic conventions 1.43 (read 2026-11). Attributes that begin with `vatproof.` are
 * exported, too.
 */
const exported: ReadonlySet<string> = new Set([
  "db.collection.name",
  "db.namespace",
  "db.operation.batch.size",
  "db.operation.name",
  "db.stored_procedure.name",
  "db.system.name",
  "error.type",
  "http.request.method",
  "http.response.status_code",
  "http.route",
  "network.protocol.version",
  "server.address",
  "server.port",
  "url.full",
  "url.scheme",
  "url.template"
])
const ownPrefix = "vatproof."

/** The attribute that marks a span with a defect. The attribute is not exported. */
export const defectAttribute = "defect"
/** The attribute in which the database client stores the text of its statement. The attribute is not exported. */
const statementAttribute = "db.query.text"
const failoverAttribute = "vatproof.failover"

/**
 * Returns true if a span failed. A defect fails any span, a status of 500 or above fails a server span, and an error fails a
 * client span. A typed failure does not fail an internal span
 * (https://opentelemetry.io/docs/specs/semconv/http/http-spans/#status, read 2026-11).
 */
const isFailed = ({ attributes, kind }: ReadableSpan): boolean => {
  if (attributes[defectAttribute] === true) return true
  switch (kind) {
    case SpanKind.SERVER:
      return Number(attributes["http.response.status_code"] ?? 0) >= 500
    case SpanKind.INTERNAL:
      return false
    default:
      return attributes["error.type"] !== undefined
  }
}

/** Returns true if the trace of the span is exported even if it is not sampled. */
export const isKept = (span: ReadableSpan): boolean => isFailed(span) || span.attributes[failoverAttribute] === true

/** Marks an exported span as sampled, because the decision to export it may be made at the end of its trace. */
const sampled = (context: SpanContext): SpanContext => ({ ...context, traceFlags: TraceFlags.SAMPLED })

/** Maximum number of cached redacted values. They are cached, because values such as routes repeat and redaction is expensive. */
const maxCached = 2_000

const caching = (redaction: Redaction) => {
  const cached = new Map<string, string>()
  return (text: string): string => {
    const redacted = cached.get(text) ?? redaction.text(text)
    if (cached.size < maxCached) cached.set(text, redacted)
    return redacted
  }
}

/** Returns the function that turns a recorded span into the exported span. */
export const make = (redaction: Redaction) => {
  const redacted = caching(redaction)
  const attributesOf = (entries: ReadonlyArray<readonly [string, AttributeValue | undefined]>): Attributes => {
    const attributes: Attributes = {}
    for (const [name, value] of entries) {
      if (!exported.has(name) && !name.startsWith(ownPrefix)) continue
      if (typeof value === "string") attributes[name] = redacted(value.slice(0, maxLength))
      else if (typeof value === "number" || typeof value === "boolean") attributes[name] = value
    }
    return attributes
  }

  return (span: ReadableSpan): ReadableSpan => {
    const context = sampled(span.spanContext())
    const parent = span.parentSpanContext
    const text = span.attributes[statementAttribute]
    const statement = text === undefined ? { name: span.name, attributes: [] } : StatementName.make(String(text))
    return {
      name: statement.name,
      kind: span.kind,
      spanContext: () => context,
      ...(parent === undefined ? {} : { parentSpanContext: sampled(parent) }),
      startTime: span.startTime,
      endTime: span.endTime,
      duration: span.duration,
      status: { code: isFailed(span) ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
      attributes: attributesOf([...Object.entries(span.attributes), ...statement.attributes]),
      links: span.links.map((link) => ({ context: sampled(link.context) })),
      events: [],
      ended: true,
      resource: span.resource,
      instrumentationScope: span.instrumentationScope,
      droppedAttributesCount: 0,
      droppedEventsCount: 0,
      droppedLinksCount: 0
    }
  }
}
