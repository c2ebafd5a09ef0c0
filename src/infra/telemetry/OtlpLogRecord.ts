/** Log lines as OTLP records: the same redacted line as on standard output, with its trace in the record's own fields. */
import { logLevelToSeverityNumber, OtelLoggerProvider } from "@effect/opentelemetry/OtelLogger"
import { ROOT_CONTEXT, trace, TraceFlags } from "@opentelemetry/api"
import { Effect, Logger } from "effect"
import { lineOf } from "#infra/telemetry/Logs.ts"
import type { Redaction } from "#infra/telemetry/Redaction.ts"

export const make = (redaction: Redaction) =>
  Effect.map(OtelLoggerProvider, (provider) => {
    const otel = provider.getLogger("vatproof")
    const toLine = lineOf(redaction)
    return Logger.make<unknown, void>((options) => {
      const { error, level, message, span_id, timestamp: _, trace_id, ...annotations } = toLine(options)
      const attributes: Record<string, string | number | boolean> = {}
      for (const [name, value] of Object.entries(annotations)) attributes[name] = attributeOf(value)
      if (error !== undefined) attributes["exception.stacktrace"] = JSON.stringify(error)
      otel.emit({
        body: message,
        severityText: level.toUpperCase(),
        severityNumber: logLevelToSeverityNumber(options.logLevel),
        timestamp: options.date,
        attributes,
        ...(trace_id === undefined || span_id === undefined ? {} : { context: contextOf(trace_id, span_id) })
      })
    })
  })

const contextOf = (traceId: string, spanId: string) =>
  trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: TraceFlags.SAMPLED })

const attributeOf = (value: unknown) =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? value : JSON.stringify(value)
