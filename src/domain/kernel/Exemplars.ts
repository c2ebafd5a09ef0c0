/** Examples of what a histogram counted: of each series and bucket the newest request whose trace is sampled. */
import { Context, type Metric } from "effect"

/** `atMs` is in milliseconds since 1970. */
export interface Exemplar {
  readonly traceId: string
  readonly value: number
  readonly atMs: number
}

/** Series that have exemplars; those of later ones are not kept. */
const maxSeries = 500

/** What names a series, in the process and in a snapshot. */
interface Series {
  readonly id: string
  readonly attributes?: Metric.Metric.AttributeSet | undefined
}

export interface Exemplars {
  readonly note: (series: Series, exemplar: Exemplar) => void
  /** The newest exemplar between two boundaries: above `from` up to `to`. */
  readonly between: (series: Series, from: number, to: number) => Exemplar | undefined
}

const keyOf = ({ attributes, id }: Series) => `${id} ${Object.entries(attributes ?? {}).join(" ")}`

/** Of a series: many more requests than it has buckets, so that a rare bucket keeps its exemplar. */
const maxOfSeries = 64

const make = (): Exemplars => {
  const known = new Map<string, Array<Exemplar>>()
  return {
    note: (series, exemplar) => {
      const key = keyOf(series)
      const before = known.get(key) ?? []
      if (before.length === 0 && known.size >= maxSeries) return
      before.push(exemplar)
      if (before.length > maxOfSeries) before.shift()
      known.set(key, before)
    },
    between: (series, from, to) => known.get(keyOf(series))?.findLast(({ value }) => value > from && value <= to)
  }
}

export const Exemplars = Context.Reference<Exemplars>("vatproof/domain/kernel/Exemplars", { defaultValue: make })
