/**
 * All metrics in Prometheus' text format, version 0.0.4, with the names that OpenTelemetry's conventions come to there: units in full and
 * `_total` for what only grows (https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/, read 2026-11).
 */
import { Effect, Metric } from "effect"
import { PrometheusMetrics } from "effect/observability"

export const contentType = "text/plain; version=0.0.4; charset=utf-8"

/** UCUM units as Prometheus names them. What stands in braces, as in {request}, is a remark and no unit. */
const unitNames: ReadonlyMap<string, string> = new Map([
  ["s", "seconds"],
  ["ms", "milliseconds"],
  ["By", "bytes"],
  ["1", "ratio"]
])

const suffixesOf = ({ attributes, id, state, type }: Metric.Metric.Snapshot): string => {
  const unit = unitNames.get(attributes?.["unit"] ?? "")
  const named = unit === undefined || (unit === "ratio" && type !== "Gauge") || id.endsWith(`.${unit}`) ? "" : `.${unit}`
  return type === "Counter" && state.incremental ? `${named}.total` : named
}

/** The text of this moment. What goes up and down is a gauge there, whatever it is made of. */
export const make = Effect.gen(function* () {
  const snapshot = yield* Metric.snapshot
  const suffixes = new Map(snapshot.map((series) => [series.id, suffixesOf(series)]))
  const upDown = new Set(
    snapshot.flatMap((series) => (series.type === "Counter" && !series.state.incremental ? [nameOf(series.id)] : []))
  )
  const text = yield* PrometheusMetrics.format({ metricNameMapper: (id) => `${id}${suffixes.get(id) ?? ""}` })
  return text.replace(/^# TYPE (\w+) counter$/gmu, (line, name) => (upDown.has(name) ? `# TYPE ${name} gauge` : line))
})

const nameOf = (id: string) => id.replace(/\W+/gu, "_")
