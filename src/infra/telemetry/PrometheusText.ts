/**
 * All metrics in Prometheus' text format 0.0.4, or as OpenMetrics 1.0 with exemplars for clients that accept it. Names follow
 * OpenTelemetry's conventions for Prometheus: units in full, and `_total` for counters
 * (https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/,
 * https://prometheus.io/docs/specs/om/open_metrics_spec/, read 2026-11).
 */
import { Context, Effect, Metric } from "effect"
import { Exemplars } from "#domain/telemetry/Exemplars.ts"

export type Format = "text" | "openmetrics"

export const contentTypes = {
  text: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
} as const

/**
 * Returns the format for an Accept header: OpenMetrics if the header accepts it, as Prometheus' header does, otherwise plain
 * text.
 */
export const formatFor = (accept: string | undefined): Format =>
  accept?.includes("application/openmetrics-text") === true ? "openmetrics" : "text"

/** The attributes of the process (OpenTelemetry's resource), as labels of `target_info`. */
export const TargetInfo = Context.Reference<Readonly<Record<string, string>>>("vatproof/infra/telemetry/TargetInfo", {
  defaultValue: () => ({})
})

/** Prometheus' names of UCUM units. Text in braces, as in {request}, is an annotation, not a unit. */
const unitNames: ReadonlyMap<string, string> = new Map([
  ["s", "seconds"],
  ["ms", "milliseconds"],
  ["By", "bytes"],
  ["1", "ratio"]
])

/** The end of every OpenMetrics text. */
export const end = "# EOF"

/** Returns the current metrics as text. */
export const make = Effect.fnUntraced(function* (format: Format) {
  const families = new Map<string, Array<Metric.Metric.Snapshot>>()
  for (const series of yield* Metric.snapshot) {
    const name = nameOf(series)
    families.set(name, [...(families.get(name) ?? []), series])
  }
  const info = Object.entries(yield* TargetInfo).map(([name, value]) => label(name, value))
  const exemplars = yield* Exemplars
  const lines = [
    `# HELP ${format === "text" ? "target_info" : "target"} The process that reports these metrics`,
    `# TYPE ${format === "text" ? "target_info gauge" : "target info"}`,
    `target_info{${info.join(",")}} 1`,
    ...[...families].flatMap(([name, all]) => linesOf(name, all, format, exemplars)),
    ...(format === "openmetrics" ? [end] : [])
  ]
  return `${lines.join("\n")}\n`
})

const nameOf = ({ attributes, id, type }: Metric.Metric.Snapshot): string => {
  const unit = unitNames.get(attributes?.["unit"] ?? "")
  const named = unit === undefined || (unit === "ratio" && type !== "Gauge") || id.endsWith(`.${unit}`) ? "" : `.${unit}`
  return `${id}${named}`.replace(/\W+/gu, "_")
}

/** Returns the lines of one metric. Up-down counters become gauges. */
const linesOf = (
  name: string,
  all: ReadonlyArray<Metric.Metric.Snapshot>,
  format: Format,
  exemplars: Exemplars
): ReadonlyArray<string> => {
  const [first] = all
  const grows = first?.type === "Counter" && first.state.incremental
  const sample = grows ? `${name}_total` : name
  const family = format === "text" ? sample : name
  const kind = grows ? "counter" : first?.type === "Histogram" ? "histogram" : "gauge"
  const series = all.flatMap((one): ReadonlyArray<string> => {
    const labels = Object.entries(one.attributes ?? {}).flatMap(([key, value]) => (key === "unit" ? [] : [label(key, value)]))
    if (one.type === "Counter") return [`${sample}${braced(labels)} ${numberOf(one.state.count)}`]
    if (one.type === "Gauge") return [`${sample}${braced(labels)} ${numberOf(one.state.value)}`]
    return one.type === "Histogram" ? bucketsOf(name, one, labels, format, exemplars) : []
  })
  return [`# HELP ${family} ${escaped(first?.description ?? name)}`, `# TYPE ${family} ${kind}`, ...series]
}

const bucketsOf = (
  name: string,
  series: Metric.Metric.SnapshotProto<"Histogram", Metric.HistogramState>,
  labels: ReadonlyArray<string>,
  format: Format,
  exemplars: Exemplars
) => {
  const { buckets, count, sum } = series.state
  const bounds = [...buckets.filter(([bound]) => Number.isFinite(bound)), [Infinity, count] as const]
  const lines = bounds.map(([bound, counted], index) => {
    const le = Number.isInteger(bound) && format === "openmetrics" ? `${bound}.0` : numberOf(bound)
    const line = `${name}_bucket${braced([...labels, label("le", le)])} ${counted}`
    const below = bounds[index - 1]?.[0] ?? -Infinity
    const exemplar = format === "openmetrics" ? exemplars.between(series, below, bound) : undefined
    return exemplar === undefined
      ? line
      : `${line} # {${label("trace_id", exemplar.traceId)}} ${exemplar.value} ${exemplar.atMs / 1000}`
  })
  return [...lines, `${name}_sum${braced(labels)} ${numberOf(sum)}`, `${name}_count${braced(labels)} ${count}`]
}

const braced = (labels: ReadonlyArray<string>) => (labels.length === 0 ? "" : `{${labels.join(",")}}`)

const label = (name: string, value: string) => `${name.replace(/\W+/gu, "_")}="${escaped(value).replaceAll('"', '\\"')}"`

const escaped = (text: string) => text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")

const numberOf = (value: number | bigint): string => (value === Infinity ? "+Inf" : value === -Infinity ? "-Inf" : String(value))
