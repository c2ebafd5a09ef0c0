/** Exemplars of histograms: the trace of the newest sampled request for each series and bucket. */
import { Context, type Metric } from "effect"

/** `atMs` is in milliseconds since 1970. */
export interface Exemplar {
  readonly traceId: string
  readonly value: number
  readonly atMs: number
}

/** Maximum number of series with exemplars. */
const maxSeries = 500

/** Identifies a series of a metric. A metric object and a snapshot of it both have these two fields. */
interface Series {
  readonly id: string
  readonly attributes?: Metric.Metric.AttributeSet | undefined
}

export interface Exemplars {
  readonly note: (series: Series, exemplar: Exemplar) => void
  /** Returns the newest exemplar with a value above `from` and up to `to`. */
  readonly between: (series: Series, from: number, to: number) => Exemplar | undefined
}

const keyOf = ({ attributes, id }: Series) => `${id} ${Object.entries(attributes ?? {}).join(" ")}`

/** Maximum number of exemplars of a series: far more than it has buckets, so that a rare bucket keeps its exemplar. */
const maxOfSeries = 64

const make = (): Exemplars => {
  const bySeries = new Map<string, Array<Exemplar>>()
  return {
    note: (series, exemplar) => {
      const key = keyOf(series)
      const before = bySeries.get(key) ?? []
      if (before.length === 0 && bySeries.size >= maxSeries) return
      before.push(exemplar)
      if (before.length > maxOfSeries) before.shift()
      bySeries.set(key, before)
    },
    between: (series, from, to) => bySeries.get(keyOf(series))?.findLast(({ value }) => value > from && value <= to)
  }
}

export const Exemplars = Context.Reference<Exemplars>("vatproof/domain/telemetry/Exemplars", { defaultValue: make })
