/** The extent of an export: the events at positions `from` (inclusive) to `to` (exclusive) of a log with `size` signed events. */
export interface Extent {
  readonly from: number
  readonly to: number
  readonly size: number
}

export const leftOutJson = ({ from, size, to }: Extent) => ({ left_out: { earlier: from, later: size - to } })
export const leftOutSentence = ({ from, size, to }: Extent) =>
  `The export leaves out ${from} earlier and ${size - to} later signed events.`
