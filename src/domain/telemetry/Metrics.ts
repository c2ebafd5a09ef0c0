/**
 * Defines metrics: name and unit by OpenTelemetry's conventions (https://opentelemetry.io/docs/specs/semconv/general/metrics/,
 * read 2026-11), and one series per set of labels. Labels have few values and contain no data of callers or requests.
 */
import { Effect, Metric } from "effect"

/** `unit` is a UCUM code: s, By, 1, or an annotation in braces such as {request}. */
export interface InstrumentOptions {
  readonly unit: string
  readonly description: string
}

export type Labels = Readonly<Record<string, string>>

/**
 * Maximum number of series of a metric. When it is reached, all new sets of labels share one further series, as in
 * OpenTelemetry's SDKs.
 */
const maxSeries = 500
const overflow: Labels = { "otel.metric.overflow": "true" }

/**
 * Returns a function that returns the series of a set of labels. Each series is created once, because creating a series costs
 * more than counting.
 */
const family = <M>(make: (attributes: Labels) => M, { unit }: InstrumentOptions) => {
  const series = new Map<string, M>()
  return (labels: Labels = {}): M => {
    const key = Object.entries(labels).join("\0")
    const existing = series.get(key)
    if (existing !== undefined) return existing
    const made = make({ unit, ...(series.size < maxSeries ? labels : overflow) })
    if (series.size < maxSeries) series.set(key, made)
    return made
  }
}

const begun: Array<Metric.Counter<number>> = []

/** Defines a counter. The series of all combinations of the known values of its labels are 0 from the start (`begin`). */
export const counter = (
  name: string,
  options: InstrumentOptions,
  values: Readonly<Record<string, ReadonlyArray<string>>> = {}
) => {
  const seriesOf = family(
    (attributes) => Metric.counter(name, { description: options.description, incremental: true, attributes }),
    options
  )
  const combined = Object.entries(values).reduce<ReadonlyArray<Labels>>(
    (sets, [label, known]) => sets.flatMap((set) => known.map((value) => ({ ...set, [label]: value }))),
    [{}]
  )
  begun.push(...combined.map(seriesOf))
  return seriesOf
}

/** Sets all counters with known labels to 0. The rate of a series that begins with 1 would miss its first event. */
export const begin = Effect.suspend(() => Effect.forEach(begun, (series) => Metric.update(series, 0), { discard: true }))

/** A counter that can also decrease. */
export const upDownCounter = (name: string, options: InstrumentOptions) =>
  family((attributes) => Metric.counter(name, { description: options.description, attributes }), options)

export const gauge = (name: string, options: InstrumentOptions) =>
  family((attributes) => Metric.gauge(name, { description: options.description, attributes }), options)

export const histogram = (name: string, boundaries: ReadonlyArray<number>, options: InstrumentOptions) =>
  family((attributes) => Metric.histogram(name, { description: options.description, boundaries, attributes }), options)

/**
 * Bucket boundaries in seconds: those of OpenTelemetry's HTTP conventions, and further ones up to 40 s, because a validation takes up to 35 s.
 */
export const durationBoundaries = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 15, 20, 30, 40]
