/** Collects the findings of a verification: each is a defect of the log with its position. */

/**
 * A defect of the log. `position` is null if the defect does not concern one single event. A defect of a projection also has the
 * table and the key of the wrong row.
 */
export interface Finding {
  readonly position: number | null
  readonly message: string
  readonly table?: string
  readonly key?: string
}

/** A row of a projection, and the position of the event that it mainly concerns. */
export interface RowPlace {
  readonly table: string
  readonly key: string
  readonly position: number | null
}

/**
 * Maximum number of findings that are kept. Further findings are only counted, because an altered log can have one finding for each
 * event.
 */
const maxKept = 1_000

/** Keeps findings in the order of their addition. Adjacent `missing` positions become one finding. */
export interface Findings {
  readonly add: (position: number | null, message: string) => void
  readonly addRow: (place: RowPlace, message: string) => void
  readonly missing: (position: number) => void
  /** Adds the findings of a part of the verification that ran beside this one. */
  readonly addAll: (others: Findings) => void
  readonly list: () => ReadonlyArray<Finding>
  readonly count: () => number
}

export const make = (): Findings => {
  const kept: Array<Finding> = []
  let count = 0
  let gap: { readonly from: number; readonly to: number } | null = null

  const keep = (finding: Finding) => {
    closeGap()
    count += 1
    if (kept.length < maxKept) kept.push(finding)
  }

  const add = (position: number | null, message: string) => keep({ position, message })

  const closeGap = () => {
    if (gap === null) return
    const { from, to } = gap
    gap = null
    add(from, to === from + 1 ? "the event is missing" : `the events from this position to ${to - 1} are missing`)
  }

  return {
    add,
    addRow: ({ key, position, table }, message) =>
      keep({ position, message: `${table}${key === "" ? "" : ` ${key}`}: ${message}`, table, key }),
    missing: (position) => {
      if (gap?.to !== position) closeGap()
      gap = { from: gap?.from ?? position, to: position + 1 }
    },
    addAll: (others) => {
      const keptByOthers = others.list()
      keptByOthers.forEach(keep)
      count += others.count() - keptByOthers.length
    },
    list: () => {
      closeGap()
      return kept
    },
    count: () => {
      closeGap()
      return count
    }
  }
}
